package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// terminal is a terminal with a shell in front of it.
type terminal struct {
	t      *testing.T
	master *os.File
	shell  *exec.Cmd
	output strings.Builder
}

// openTerminal starts a shell with a script on a new terminal. The script runs docent as "$docent".
func openTerminal(t *testing.T, shell, script string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	number, locked := uint32(0), int32(0)
	control(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer func() { _ = slave.Close() }()
	cmd := exec.Command(shell, "-c", script)
	cmd.Env = append(docent().Env, "docent="+os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &terminal{t: t, master: master, shell: cmd}
}

func control(t *testing.T, file *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	raw, err := file.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
		require.Zero(t, errno)
	}))
}

// press types on the terminal.
func (c *terminal) press(keys string) {
	c.t.Helper()
	_, err := io.WriteString(c.master, keys)
	require.NoError(c.t, err)
}

// await waits for a text in the output.
func (c *terminal) await(text string) {
	c.t.Helper()
	require.NoError(c.t, c.master.SetReadDeadline(time.Now().Add(testzk.Patience)))
	buffer := make([]byte, 4096)
	for !strings.Contains(c.output.String(), text) {
		n, err := c.master.Read(buffer)
		c.output.Write(buffer[:n])
		require.NoError(c.t, err, "no %q in: %s", text, c.output.String())
	}
}

// wait waits until the shell has ended.
func (c *terminal) wait() {
	c.t.Helper()
	overdue := time.AfterFunc(testzk.Patience, func() { _ = c.shell.Process.Kill() })
	_ = c.shell.Wait()
	require.True(c.t, overdue.Stop(), "the shell does not end: %s", &c.output)
}

const (
	interruptKey = "\x03"
	suspendKey   = "\x1a"
)

func lockLine(t *testing.T, script string) string { return docentLine(t, "sh -c '"+script+"'") }

// docentLine returns a line for a shell that runs a command under a lock.
func docentLine(t *testing.T, command string) string {
	return fmt.Sprintf(`"$docent" %s -- %s`, strings.Join(connected("lock", testzk.Path(t)), " "), command)
}

func TestInterruptOfATerminalEndsTheCommandAndTheScript(t *testing.T) {
	t.Parallel()
	// Not a shell: one that is interrupted right before it starts a command waits for that first.
	c := openTerminal(t, "bash", docentLine(t, "cat")+`; echo not reached`)
	c.press("hello\n")
	c.await("hello\r\nhello\r\n") // the second one is of cat
	c.press(interruptKey)
	c.wait()
	status := c.shell.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), "%v: %s", c.shell.ProcessState, c.output.String())
	assert.Equal(t, syscall.SIGINT, status.Signal())
}

// A shell ignores SIGINT in what a script starts in the background. docent ends all the same.
func TestACommandThatExitsAsAfterAnIgnoredInterruptEndsDocent(t *testing.T) {
	t.Parallel()
	c := openTerminal(t, "sh", `trap "" INT; `+lockLine(t, "exit 130")+`; echo "ended $?."`)
	c.await("ended 130.")
}

func TestACommandThatCatchesTheInterruptGoesOn(t *testing.T) {
	t.Parallel()
	line := lockLine(t, `trap "caught=yes" INT; echo ready.
		while [ -z "$caught" ]; do sleep 0.01; done; echo caught.; exit 3`)
	c := openTerminal(t, "sh", `trap : INT; `+line+`; echo "ended $?."`)
	c.await("ready.")
	c.press(interruptKey)
	c.await("caught.")
	c.await("ended 3.")
}

func TestATerminalStopsAndContinuesTheCommand(t *testing.T) {
	t.Parallel()
	line := lockLine(t, `echo ready.; read line; echo "got ${line}."; exit 4`)
	c := openTerminal(t, "sh", `set -m; `+line+`; echo "stopped $?."; fg; echo "ended $?."`)
	c.await("ready.")
	c.press(suspendKey)
	c.await("stopped 148.")
	c.press("hello\n")
	c.await("got hello.")
	c.await("ended 4.")
}

func TestAPipelineReadsTheTerminal(t *testing.T) {
	t.Parallel()
	pager := `sh -c 'cat; read line </dev/tty; echo "got ${line}."'`
	c := openTerminal(t, "sh", lockLine(t, `echo one`)+" | "+pager+`; echo "ended $?."`)
	c.await("one")
	c.press("hello\n")
	c.await("got hello.")
	c.await("ended 0.")
}
