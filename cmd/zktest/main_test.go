package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds the wait for something that must happen; nothing should take as long.
const patience = time.Minute

// binary is the command, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	folder, err := os.MkdirTemp("", "zktest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary = filepath.Join(folder, "zktest.exe")
	if output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

// running is a started command.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string // the connect string
	in   io.WriteCloser
	out  *bufio.Reader
	errs strings.Builder
}

// start starts the command and returns when it listens. Standard input is a pipe if the command
// takes commands, and empty otherwise. The command is killed if it runs at the end of the test.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience) // for all that a test does
	t.Cleanup(cancel)
	r := &running{t: t, cmd: exec.CommandContext(ctx, binary, append([]string{"-listen", "127.0.0.1:0"}, args...)...)}
	r.cmd.Stderr = &r.errs
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	if slices.Contains(args, "-commands") {
		r.in, err = r.cmd.StdinPipe()
		require.NoError(t, err)
	}
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = r.cmd.Wait() // an error if the test has already waited
	})
	r.out = bufio.NewReader(out)
	line, err := r.out.ReadString('\n')
	if err != nil {
		_ = r.cmd.Wait() // otherwise it may still be writing
		t.Fatalf("the command said %q, and %q, and ended: %v", line, r.errs.String(), err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "zktest: listening on ")
	require.True(t, ok, "the line was %q", line)
	r.addr = addr
	return r
}

// stop sends a signal to the command, which must then end without an error or further output.
func (r *running) stop(signal os.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(signal))
	r.requireEnd()
}

// requireEnd waits until the command ends without an error or further output.
func (r *running) requireEnd() {
	r.t.Helper()
	rest, err := io.ReadAll(r.out)
	require.NoError(r.t, err)
	require.NoError(r.t, r.cmd.Wait())
	assert.Empty(r.t, string(rest))
	assert.Empty(r.t, r.errs.String())
}

func (r *running) connect(timeout time.Duration) *zk.Conn {
	r.t.Helper()
	conn, _ := r.connectTo(r.addr, timeout)
	return conn
}

// connectTo returns a client that has a session, and its further events.
func (r *running) connectTo(servers string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	r.t.Helper()
	conn, events, err := zk.Connect(strings.Split(servers, ","), timeout, zk.WithLogger(quiet{}))
	require.NoError(r.t, err)
	r.t.Cleanup(conn.Close)
	await(r.t, events, zk.StateHasSession)
	return conn, events
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// await waits for a state of a client and ignores others.
func await(t *testing.T, events <-chan zk.Event, want zk.State) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case event := <-events:
			if event.State == want {
				return
			}
		case <-limit:
			t.Fatalf("the client does not become %v", want)
		}
	}
}

// fails runs the command to its end, and returns the exit code and the line that it prints.
func fails(t *testing.T, args ...string) (code int, message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Run(), &exit), "%v did not fail", args)
	assert.Empty(t, out.String())
	line, rest, ended := strings.Cut(errs.String(), "\n")
	assert.True(t, ended, "the line has no end: %q", line)
	assert.Empty(t, rest, "more than one line")
	return exit.ExitCode(), line
}

func TestServesUntilASignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send to other processes")
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			r := start(t)
			conn := r.connect(10 * time.Second)
			_, err := conn.Create("/a", []byte("x"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			data, _, err := conn.Get("/a")
			require.NoError(t, err)
			assert.Equal(t, "x", string(data))
			r.stop(signal) // while a client is connected
		})
	}
}

// ask sends a four-letter word and returns the answer.
func (r *running) ask(word string) string {
	r.t.Helper()
	return r.askAt(r.addr, word)
}

func (r *running) askAt(addr, word string) string {
	r.t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(r.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(r.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, word)
	require.NoError(r.t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(r.t, err)
	return string(answer)
}

func TestDefaultsAreThoseOfARealServer(t *testing.T) {
	r := start(t)
	conf := r.ask("conf")
	assert.Contains(t, conf, "\nminSessionTimeout=4000\n")
	assert.Contains(t, conf, "\nmaxSessionTimeout=40000\n")
	assert.Contains(t, r.ask("srvr"), "Zookeeper version: 3.9")
}

func TestFlagsReachTheServer(t *testing.T) {
	r := start(t, "-compat", "3.8", "-min-timeout", "1s", "-max-timeout", "2m")
	conf := r.ask("conf")
	assert.Contains(t, conf, "\nminSessionTimeout=1000\n")
	assert.Contains(t, conf, "\nmaxSessionTimeout=120000\n")
	assert.Contains(t, r.ask("srvr"), "Zookeeper version: 3.8")
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "nodes.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestLoadsNodes(t *testing.T) {
	r := start(t, "-load", write(t, `{"/app/mode": "test", "/app": "top", "/other/deep/node": "ünï"}`))
	conn := r.connect(10 * time.Second)
	want := map[string]string{"/app": "top", "/app/mode": "test", "/other": "", "/other/deep/node": "ünï"}
	for path, want := range want {
		data, _, err := conn.Get(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, string(data), path)
	}
}

func TestBadNodesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"/a": 1}`:     "JSON",
		`["/a"]`:        "JSON",
		`{"/a"`:         "JSON",
		`{"/a//b": ""}`: `"/a//b"`,
		`{"a": ""}`:     `"a"`,
	} {
		code, message := fails(t, "-listen", "127.0.0.1:0", "-load", write(t, text))
		assert.Equal(t, failed, code, text)
		assert.Contains(t, message, want, text)
	}
	code, message := fails(t, "-load", "/no/such/file.json")
	assert.Equal(t, failed, code)
	assert.Contains(t, message, "/no/such/file.json")
}

func TestTakenPortIsReported(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	code, message := fails(t, "-listen", listener.Addr().String())
	assert.Equal(t, failed, code)
	assert.Contains(t, message, listener.Addr().String())
}

func TestBadFlagsAreNamed(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-listen", "nowhere"}, `"nowhere"`},
		{[]string{"-listen", "127.0.0.1:http"}, `"127.0.0.1:http"`},
		{[]string{"-listen", "127.0.0.1:65536"}, `"127.0.0.1:65536"`},
		{[]string{"-compat", "3.5"}, `"3.5"`},
		{[]string{"-min-timeout", "soon"}, `"soon"`},
		{[]string{"-min-timeout", "0s"}, "-min-timeout 0s"},
		{[]string{"-max-timeout", "3s"}, "-max-timeout 3s"},
		{[]string{"-servers", "0"}, "-servers 0"},
		{[]string{"-servers", "10"}, "-servers 10"},
		{[]string{"-servers", "three"}, `"three"`},
		{[]string{"-container-interval", "0s"}, "-container-interval 0s"},
		{[]string{"-container-interval", "often"}, `"often"`},
		{[]string{"-set", "jute.maxbuffer"}, `"jute.maxbuffer"`},
		{[]string{"-set", "=1"}, `"=1"`},
		{[]string{"-set", "nosuch=1"}, "nosuch=1: no such setting"},
		{[]string{"-set", "jute.maxbuffer=many"}, "jute.maxbuffer=many"},
		{[]string{"-set", "enforceQuota=true", "-set", "enforceQuota=maybe"}, "enforceQuota=maybe"},
		{[]string{"-set", "minSessionTimeout=50000"}, "50s to 40s"},
		{[]string{"-listne", "127.0.0.1:0"}, "-listne"},
		{[]string{"127.0.0.1:2181"}, `"127.0.0.1:2181"`},
	} {
		code, message := fails(t, test.args...)
		assert.Equal(t, badUsage, code, "%q", test.args)
		assert.Contains(t, message, test.want)
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, fine, run(context.Background(), []string{"-h"}, strings.NewReader(""), &out, &errs))
	for _, name := range []string{
		"-listen", "-compat", "-load", "-min-timeout", "-max-timeout", "-servers", "-container-interval", "-set",
	} {
		assert.Contains(t, out.String(), name+" ")
	}
	assert.Contains(t, out.String(), "-commands\n")
	for _, c := range commands {
		assert.Contains(t, out.String(), "\n  "+c.usage()+" ")
	}
	assert.Empty(t, errs.String())
}

func TestSettingsReachTheServer(t *testing.T) {
	r := start(t, "-set", "jute.maxbuffer=1000",
		"-set", "zookeeper.maxSessionTimeout=7000", "-set", "maxSessionTimeout=8000")
	assert.Contains(t, r.ask("conf"), "\nmaxSessionTimeout=8000\n", "the last one applies, after -max-timeout")
	conn := r.connect(10 * time.Second)
	_, err := conn.Create("/small", make([]byte, 200), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = conn.Create("/large", make([]byte, 2000), 0, zk.WorldACL(zk.PermAll))
	require.Error(t, err)
}

func TestFlagSetsTheIntervalForContainers(t *testing.T) {
	r := start(t, "-container-interval", "20ms")
	conn := r.connect(10 * time.Second)
	_, err := conn.CreateContainer("/c", nil, 4, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, _, watch, err := conn.ExistsW("/c")
	require.NoError(t, err)
	_, err = conn.Create("/c/child", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.NoError(t, conn.Delete("/c/child", -1))
	select {
	case event := <-watch:
		require.Equal(t, zk.EventNodeDeleted, event.Type)
	case <-time.After(40 * time.Second): // without the flag it is a minute
		t.Fatal("the container stays")
	}
}
