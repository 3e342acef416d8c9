//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// endings are the signals that end a program which does not catch them.
var endings = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
}

// Catch lets c receive the signals that Run passes on to a command, and SIGPIPE, which would end
// this process if what reads its messages ends. It leaves out what the parent of this process has
// chosen to ignore, as nohup(1) does. The command ignores that, too.
func Catch(c chan<- os.Signal) {
	for _, s := range append([]os.Signal{syscall.SIGWINCH, syscall.SIGPIPE}, endings...) {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// passedOn reports whether Run passes a signal on to the command. The terminal itself sends some
// signals to the command, which is in the process group of this process there.
func passedOn(s os.Signal, terminal bool) bool {
	switch s {
	case syscall.SIGPIPE:
		return false
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		return !terminal
	}
	return true
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}

// EndByInterrupt ends this process by SIGINT if it has a controlling terminal. So a shell that has
// received the interrupt of the terminal, too, ends its loop or its script. It returns if SIGINT does not
// end this process: if its parent has chosen to ignore the signal, as a shell does in the background of
// a script, or has blocked it, and in the first process of a container.
func EndByInterrupt() {
	if !hasTerminal() || signal.Ignored(syscall.SIGINT) || os.Getpid() == 1 {
		return
	}
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
	time.Sleep(time.Second) // the signal ends the process meanwhile, unless it is blocked
}
