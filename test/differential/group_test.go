package differential

import (
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// scenario drives one server. Its transcript must be the same on both.
type scenario func(s *script)

// name returns the name of the function, so that a group is a list of functions.
func (f scenario) name() string {
	full := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return full[strings.LastIndex(full, ".")+1:]
}

// group is the scenarios that share a configuration.
type group struct {
	config     config
	scenarios  []scenario
	concurrent bool // all at the same time, for scenarios that wait; does not compare zxids
	reaping    bool // does not compare zxids: a busy server tries to delete a container again, which takes one
	bare       bool // no node, and zxids count from 0; for a server that is new
}

// busySlots limits the groups that run at a time and do not merely wait.
var busySlots = make(chan struct{}, 2)

// compare runs a group's scenarios on both servers.
func compare(t *testing.T, g group) {
	t.Helper()
	t.Parallel()
	if !g.concurrent {
		busySlots <- struct{}{}
		t.Cleanup(func() { <-busySlots })
	}
	servers := startPair(t, g.config)
	groupsRun.Add(1)
	for _, f := range g.scenarios {
		t.Run(f.name(), func(t *testing.T) {
			if g.concurrent {
				t.Parallel()
			}
			scenariosRun.Add(1)
			compareOne(t, g, servers, f)
		})
	}
}

func compareOne(t *testing.T, g group, servers pair, f scenario) {
	t.Helper()
	var left, right []string
	var both sync.WaitGroup
	both.Go(func() { left = record(servers.left, g, f) })
	both.Go(func() { right = record(servers.right, g, f) })
	both.Wait()
	if os.Getenv("DIFFERENTIAL_SHOW") != "" {
		t.Logf("transcript:\n%s", strings.Join(left, "\n"))
	}
	if len(left) == 0 {
		t.Errorf("the transcript is empty")
	}
	if difference := diff(left, right); difference != "" {
		t.Errorf("- %s\n+ %s\n%s", servers.left.name(), servers.right.name(), difference)
	}
}

// record runs f on one server. A scenario that cannot continue ends with a line that has the
// reason.
func record(on target, g group, f scenario) []string {
	s := newScript(on, f.name())
	s.masked = g.concurrent || g.reaping
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.finish()
		if !g.bare {
			s.prepare()
		}
		f(s)
	}()
	<-done // giveUp ends the goroutine
	return s.lines
}
