package differential

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// TestQuorum compares what clients of one server of three receive when the other two stop, and when
// they restart.
func TestQuorum(t *testing.T) {
	t.Parallel()
	c := config{properties: map[string]string{"readonlymode.enabled": "true"}}.withDefaults()
	left := startRealMember(t, c)
	right := fakeMember{startFake(t, c, left.compat(t))}
	right.server.Follower(0)
	right.server.Follower(0)
	groupsRun.Add(1)
	t.Run(scenario(connectionsEndWithTheQuorum).name(), func(t *testing.T) {
		scenariosRun.Add(1)
		masked := group{concurrent: true} // each new ZooKeeper leader begins another epoch of zxids
		compareOne(t, masked, pair{left, right}, connectionsEndWithTheQuorum)
	})
}

// realMember is the first server of three. Its stop stops the other two, so that it becomes
// read-only.
type realMember struct{ realServer }

func startRealMember(t *testing.T, c config) realMember {
	t.Helper()
	realzk.Need(t)
	// Without these options a read-only server opens no session.
	opts := append(c.ensembleOptions(),
		ensemble.WithConfig("localSessionsEnabled", "true"),
		ensemble.WithConfig("localSessionsUpgradingEnabled", "true"))
	e := ensemble.Start(t, 3, opts...)
	return realMember{realServer{e, e.Servers()[0]}}
}

const quorumPatience = 2 * time.Minute

func (r realMember) stop() error {
	var errs []error
	for _, other := range r.ensemble.Servers()[1:] {
		errs = append(errs, other.Kill())
	}
	return errors.Join(append(errs, r.awaitReadOnly())...)
}

// awaitReadOnly polls the server, because nothing reports the change.
func (r realMember) awaitReadOnly() error {
	ctx, cancel := context.WithTimeout(context.Background(), quorumPatience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := r.server.Command(ctx, "isro")
		if err == nil && answer == "ro" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the server does not become read-only: it answers %q, %w", answer,
				errors.Join(err, ctx.Err()))
		}
	}
}

func (r realMember) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), quorumPatience)
	defer cancel()
	for _, other := range r.ensemble.Servers()[1:] {
		if err := other.Start(ctx); err != nil {
			return err
		}
	}
	return r.ensemble.WaitReady(ctx)
}

// fakeMember switches zktest to read-only.
type fakeMember struct{ fakeServer }

func (f fakeMember) stop() error {
	f.server.SetReadOnly(true)
	return nil
}

func (f fakeMember) start() error {
	f.server.SetReadOnly(false)
	return nil
}

func acceptingReadOnly(hello rawzk.Connect) rawzk.Connect {
	hello.ReadOnly = []byte{1}
	return hello
}

// connectionsEndWithTheQuorum, and again when it is back. The scenario leaves out the return of a
// session that is older than the loss: zktest accepts it, and the real server refuses it until the
// quorum is back.
func connectionsEndWithTheQuorum(s *script) {
	a, b := s.open("a"), s.connect("b")
	a.hello(acceptingReadOnly(newSession(defaultLongest)))
	x := s.path("x")
	a.do(rawzk.Create(x, nil, rawzk.Open(), rawzk.Ephemeral))
	b.do(rawzk.Create(s.path("y"), nil, rawzk.Open(), rawzk.Ephemeral))
	s.stop()
	a.end()
	b.end()
	refused := s.open("b, which does not accept a read-only server")
	refused.hello(sameSession(b, defaultLongest))
	c := s.open("c")
	c.hello(acceptingReadOnly(newSession(defaultLongest)))
	for _, op := range []rawzk.Op{
		rawzk.Exists(x, true),
		rawzk.SetData(x, nil, -1),
		rawzk.Delete(x, -1),
		rawzk.Create(s.path("z"), nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Multi(rawzk.SetData(x, nil, -1)),
		rawzk.Sync(x),
		rawzk.Ping(),
	} {
		c.do(op)
	}
	s.logf("isro: %s", s.say("isro"))
	s.start()
	c.end()
	a, b = s.attach("a again", a), s.attach("b again", b)
	a.do(rawzk.SetData(x, []byte("1"), 0))
	b.do(rawzk.Exists(x, false))
	s.logf("isro: %s", s.say("isro"))
	a.close()
	b.close()
}
