package differential

import (
	"fmt"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

func TestContainers(t *testing.T) {
	properties := map[string]string{"znode.container.checkIntervalMs": "250"}
	compare(t, group{config: config{properties: properties}, reaping: true, scenarios: []scenario{
		usedContainerGoes,
		unusedContainerStays,
		nestedContainersGoInTurn,
		containerGoesWithItsLastEphemeral,
		nodeOutlivesItsTimeToLive,
		changedNodeStays,
		timeToLiveWaitsForChildren,
		sequentialNodesHaveTimesToLive,
		containersDeletedByHand,
	}})
}

func TestWithoutExtendedTypes(t *testing.T) {
	properties := map[string]string{"extendedTypesEnabled": "false"}
	compare(t, group{config: config{properties: properties},
		scenarios: []scenario{createFlags, createFlagsInMulti, timesToLive}})
}

const (
	briefly = 100  // ms to live: less than the interval of the checks
	soon    = 1500 // ms to live: more than one interval
)

func container(path string) rawzk.Op {
	return rawzk.CreateContainer(path, nil, rawzk.Open(), rawzk.Container)
}

func mortal(path string, ttl int64) rawzk.Op {
	return rawzk.CreateTTL(path, nil, rawzk.Open(), rawzk.TTL, ttl)
}

// await reads until n events in all have arrived.
func (c *client) await(n int) {
	for c.events < n && c.ending == nil {
		c.read()
	}
}

// twoChecks waits until the server has checked twice for nodes to reap. The first check deletes a
// node, and the second one a node that is created afterwards.
func (s *script) twoChecks() {
	c := s.connect("checks")
	for i := range 2 {
		x := s.path(fmt.Sprintf("check%d", i))
		c.each(rawzk.AddWatch(x, 0), mortal(x, 1))
		c.await(2 * (i + 1))
	}
	c.close()
}

func usedContainerGoes(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.each(container(x), node(x+"/kid"))
	w.each(rawzk.GetData(x, true), rawzk.GetChildren(s.root(), true), rawzk.Exists(x+"/kid", true))
	a.do(del(x + "/kid"))
	w.await(3) // of kid, x, and the parent's children
	a.each(rawzk.Sync("/"), rawzk.Exists(x, false), rawzk.Exists(s.root(), false))
}

// unusedContainerStays shows that an unused container is not reaped, nor a plain node created with
// the container's flag.
func unusedContainerStays(s *script) {
	a, w := s.connect("a"), s.connect("w")
	a.each(container(s.path("unused")), rawzk.Create(s.path("plain"), nil, rawzk.Open(), rawzk.Container),
		node(s.path("plain/kid")), del(s.path("plain/kid")),
		rawzk.Create2(s.path("plain2"), nil, rawzk.Open(), rawzk.Container), node(s.path("plain2/kid")),
		del(s.path("plain2/kid")), container(s.path("full")), node(s.path("full/kid")))
	s.twoChecks()
	a.do(rawzk.GetChildren(s.root(), false))
	w.do(rawzk.Exists(s.path("full"), true))
	a.do(del(s.path("full/kid")))
	w.await(1)
	a.each(rawzk.Sync("/"), rawzk.GetChildren(s.root(), false))
}

func nestedContainersGoInTurn(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.each(container(x), container(x+"/y"), node(x+"/y/kid"))
	w.do(rawzk.AddWatch(s.root(), 1))
	a.do(del(x + "/y/kid"))
	w.await(3)
	a.each(rawzk.Sync("/"), rawzk.Exists(s.root(), false))
}

func containerGoesWithItsLastEphemeral(s *script) {
	a, w := s.connect("a"), s.connect("w")
	b := s.connect("b")
	x := s.path("x")
	a.do(container(x))
	b.do(rawzk.Create(x+"/kid", nil, rawzk.Open(), rawzk.Ephemeral))
	w.do(rawzk.AddWatch(s.root(), 1))
	b.close()
	w.await(2)
	a.each(rawzk.Sync("/"), rawzk.Exists(s.root(), false))
}

func nodeOutlivesItsTimeToLive(s *script) {
	a, w := s.connect("a"), s.connect("w")
	w.do(rawzk.AddWatch(s.root(), 0))
	w.do(rawzk.AddWatch(s.root(), 1))
	v := s.connect("v")
	v.do(rawzk.AddWatch(s.path("x"), 0))
	a.do(mortal(s.path("x"), briefly))
	v.await(2)
	w.barrier()
	a.each(rawzk.Sync("/"), rawzk.Exists(s.root(), false), rawzk.GetChildren(s.root(), false))
	a.do(rawzk.Multi(mortal(s.path("x"), briefly), rawzk.Check(s.path("x"), 0)))
	v.await(4)
	a.each(rawzk.Sync("/"), rawzk.Exists(s.path("x"), false))
}

// changedNodeStays shows that the time to live starts again with each setData, and with no other
// request.
func changedNodeStays(s *script) {
	s.masked = true // the number of changes varies
	a, w := s.connect("a"), s.connect("w")
	kept, left, trials := s.path("kept"), s.path("left"), 0
	lives := inTrials(func() (lives, inTime bool) {
		if trials++; trials > 1 { // other nodes, and clients whose lines are not kept
			a, w = s.hidden(), s.hidden()
			kept, left = s.path(fmt.Sprint("kept", trials)), s.path(fmt.Sprint("left", trials))
		}
		return s.outlives(a, w, kept, left)
	})
	s.logf("the node that was changed: lives %t", lives)
	quiet := s.hidden()
	if quiet.do(rawzk.Exists(kept, true)).err == 0 {
		quiet.await(1)
	}
	s.logf("the node that is no longer changed: %s", errorText(quiet.do(rawzk.Exists(kept, false)).err))
}

// outlives reports whether kept, which is changed again and again, is there when left has been reaped. It also
// reports whether each change was in time.
func (s *script) outlives(a, w *client, kept, left string) (lives, inTime bool) {
	w.do(rawzk.AddWatch(left, 0))
	begun := time.Now()
	a.pipeline(rawzk.Multi(mortal(kept, soon), mortal(left, soon)), rawzk.SetACL(left, rawzk.Open(), -1),
		rawzk.GetData(left, false))
	a.settle()
	stop := s.keepChanging(kept, begun)
	w.await(2)
	return stop()
}

// keepChanging changes a node repeatedly until stop is called. The node's time to live began after begun. stop
// reports whether the last change has found the node, and whether the server got each change in time.
func (s *script) keepChanging(path string, begun time.Time) (stop func() (lives, inTime bool)) {
	c := s.hidden()
	quit, done := make(chan struct{}), make(chan struct{})
	lives, inTime := true, true
	go func() {
		defer close(done)
		pace := time.NewTicker(soon * time.Millisecond / 20)
		defer pace.Stop()
		for last := false; ; {
			next := time.Now()
			lives = c.do(set(path)).err == 0
			inTime = inTime && time.Since(begun) < soon*time.Millisecond
			begun = next
			if last {
				return
			}
			select {
			case <-quit:
				last = true
			case <-pace.C:
			}
		}
	}()
	return func() (bool, bool) {
		close(quit)
		<-done
		return lives, inTime
	}
}

// timeToLiveWaitsForChildren shows that a node with an expired time to live is deleted after its
// last child.
func timeToLiveWaitsForChildren(s *script) {
	a, w := s.connect("a"), s.connect("w")
	x := s.path("x")
	a.do(rawzk.Multi(mortal(x, briefly), node(x+"/kid")))
	w.do(rawzk.Exists(x, true))
	s.twoChecks()
	a.each(rawzk.Exists(x, false), rawzk.GetChildren(x, false), del(x+"/kid"))
	w.await(1)
	a.each(rawzk.Sync("/"), rawzk.Exists(x, false))
}

func sequentialNodesHaveTimesToLive(s *script) {
	a, w := s.connect("a"), s.connect("w")
	w.do(rawzk.AddWatch(s.root(), 1))
	seq := func(ttl int64) rawzk.Op {
		return rawzk.CreateTTL(s.path("n-"), nil, rawzk.Open(), rawzk.PersistentSequentTTL, ttl)
	}
	a.do(seq(briefly))
	w.await(2)
	a.do(rawzk.Multi(seq(hour), seq(briefly)))
	w.await(5)
	a.each(rawzk.Sync("/"), rawzk.GetChildren2(s.root(), false))
}

// containersDeletedByHand sends the request that is meant for the server's own use. Its body is the
// path, without a length.
func containersDeletedByHand(s *script) {
	a, w := s.connect("a"), s.connect("w")
	w.do(rawzk.AddWatch(s.root(), 1))
	for _, n := range []struct {
		name string
		make []func(path string) rawzk.Op
	}{
		{"missing", nil}, {"unused", []func(string) rawzk.Op{container}}, {"plain", []func(string) rawzk.Op{node}},
		{"mortal", []func(string) rawzk.Op{func(p string) rawzk.Op { return mortal(p, hour) }}},
		{"ephemeral", []func(string) rawzk.Op{func(p string) rawzk.Op {
			return rawzk.Create(p, nil, rawzk.Open(), rawzk.Ephemeral)
		}}},
		{"full", []func(string) rawzk.Op{container, func(p string) rawzk.Op { return node(p + "/kid") }}},
		{"sealed", []func(string) rawzk.Op{func(p string) rawzk.Op {
			return rawzk.CreateContainer(p, nil, world(0), rawzk.Container)
		}}},
	} {
		x := s.path(n.name)
		for _, op := range n.make {
			a.do(op(x))
		}
		a.do(bodied(rawzk.OpDeleteContainer, "deleteContainer "+x, []byte(x)))
		w.barrier()
		a.each(rawzk.Exists(x, false), rawzk.Sync("/"))
	}
	for _, path := range []string{"", "/", "garbage", "/zookeeper", s.root() + "/"} {
		a.each(bodied(rawzk.OpDeleteContainer, "deleteContainer "+path, []byte(path)), rawzk.Sync("/"))
	}
}
