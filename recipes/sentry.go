package recipes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-zk/docent/framework"
)

const (
	// watchAfter is how long a hold must last for its node to be watched unasked: most are over by then and save the request.
	watchAfter = 100 * time.Millisecond
	// watchAgain is the pause after a failed attempt to watch.
	watchAgain = time.Second
)

// sentry watches over a node: it ends the tenure when the node is deleted, and notices requests to give the lock back. It has a goroutine
// only while it looks.
type sentry struct {
	nodes *nodes
	index int // among them
	mu    sync.Mutex
	state sentryState
	timer *time.Timer        // of the next look; nil: there is none
	stop  context.CancelFunc // of the look under way
}

type sentryState int

const (
	idle     sentryState = iota // until the timer, or somebody, wakes it
	looking                     // at the node
	watching                    // until the watch fires
	ended                       // the tenure is over
)

// begin watches over the node, by a watch if there is one already.
func (s *sentry) begin(watch *framework.Watch) {
	s.mu.Lock()
	switch {
	case s.state != idle:
	case watch != nil:
		s.state = watching
	default:
		s.timer = time.AfterFunc(watchAfter, s.wake)
	}
	s.mu.Unlock()
	if watch != nil {
		watch.Then(s.fired)
	}
}

// fired hears that the watch has fired. It must not wait.
func (s *sentry) fired() {
	s.mu.Lock()
	if s.state == watching {
		s.state = idle
	}
	s.mu.Unlock()
	s.wake()
}

// wake has it look, unless it does already, or watches.
func (s *sentry) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != idle {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	ctx, stop := context.WithCancel(context.Background())
	if !s.nodes.Session.Go(func() { s.look(ctx) }) {
		stop()
		return // the tenure ends with the session
	}
	s.state, s.stop = looking, stop
}

// end is called with mu of the tenure held.
func (s *sentry) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = ended
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.stop != nil {
		s.stop()
	}
	s.timer, s.stop = nil, nil
}

// look reads the node with a watch and acts on what it sees.
func (s *sentry) look(ctx context.Context) {
	n := s.nodes
	ctx, stop := n.Footing.Bound(ctx)
	defer stop()
	node := n.Nodes[s.index].Path
	data, stat, watch, err := n.Session.GetW(ctx, node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		n.tenure.end(&goneError{node: node})
		return
	case err != nil:
		s.looked(func() { s.state, s.timer = idle, time.AfterFunc(watchAgain, s.wake) })
		return
	case stat.EphemeralOwner != n.Session.ID():
		n.tenure.end(&goneError{node: node, owner: stat.EphemeralOwner})
		return
	}
	if wantedBack(data) {
		n.tenure.heed()
	}
	s.looked(func() { s.state = watching })
	watch.Then(s.fired)
}

// looked notes what comes after a look, unless the tenure is over.
func (s *sentry) looked(next func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != looking {
		return
	}
	s.stop()
	s.stop = nil
	next()
}
