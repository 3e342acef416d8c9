package zktest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
)

// A bubble detects a deadlock when nothing in it waits for time. An idle server must not hide that.
func TestIdleServerDoesNotHideADeadlock(t *testing.T) {
	stuck := map[string]func(*testing.T, *zktest.Server){
		"new": func(*testing.T, *zktest.Server) {},
		"used": func(t *testing.T, srv *zktest.Server) {
			c := enterRaw(t, srv, "a")
			c.send(t, 1, rawzk.Create("/e", nil, rawzk.Open(), 1))
			c.send(t, 2, rawzk.CloseSession())
			c.receive(t, 1)
			c.receive(t, 2)
			require.NoError(t, c.Close())
		},
		"held": func(t *testing.T, srv *zktest.Server) {
			srv.On(fault.Match{Op: fault.OpCloseSession}, fault.Hold())
			enterRaw(t, srv, "a").send(t, 1, rawzk.CloseSession())
		},
	}
	for name, use := range stuck {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(inChild) != "" {
				bubble(t, func(t *testing.T, srv *zktest.Server) {
					use(t, srv)
					<-make(chan struct{})
				})
				return
			}
			pattern := "^TestIdleServerDoesNotHideADeadlock$/^" + name + "$"
			child := exec.CommandContext(soon(t), os.Args[0], "-test.run="+pattern)
			child.Env = append(os.Environ(), inChild+"=1")
			out, err := child.CombinedOutput()
			var died *exec.ExitError
			require.ErrorAs(t, err, &died)
			require.Contains(t, string(out), "deadlock: all goroutines in bubble are blocked", "%s", out)
		})
	}
}
