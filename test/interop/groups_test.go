package interop

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/persistent"
)

// groups has the memberships and the kept nodes of an actor of docent, by path.
type groups struct {
	members map[string]*group.Membership
	nodes   map[string]*persistent.Node
}

func (g groups) act(ctx context.Context, c *framework.Client, verb string, args []string) (answer string, err error) {
	path := args[0]
	switch verb {
	case "join":
		g.members[path], err = group.Join(ctx, c, path, args[1], []byte(args[2]))
		return "joined", err
	case "join-party":
		g.members[path], err = group.Join(ctx, c, path, args[1], nil, group.WithKazooNames())
		return "joined", err
	case "payload":
		return "set", g.members[path].SetPayload([]byte(args[1]))
	case "members":
		return listMembers(group.Members(ctx, c, path))
	case "members-party":
		return listMembers(group.Members(ctx, c, path, group.WithKazooNames()))
	case "leave":
		return "left", g.members[path].Close()
	case "keep":
		node, err := persistent.New(c, path, []byte(args[1]), persistent.WithOccupiedTimeout(persistent.NoLimit))
		if err != nil {
			return "", err
		}
		g.nodes[path] = node
		return "kept", node.Start(ctx)
	}
	if err := g.nodes[path].WaitReady(ctx); err != nil {
		return "", err
	}
	return "dropped", g.nodes[path].Close()
}

func listMembers(all []group.Member, err error) (string, error) {
	words := []string{"members"}
	for _, m := range all {
		words = append(words, fmt.Sprintf("%s=%s", m.ID, m.Payload))
	}
	return strings.Join(words, " "), err
}

// sees waits until an actor lists the members. Curator reads them in the background.
func (a *actor) sees(verb, path string, members ...string) {
	a.t.Helper()
	want := strings.Join(append([]string{"members"}, members...), " ")
	var last string
	for end := time.Now().Add(patience); last != want; time.Sleep(10 * time.Millisecond) {
		require.True(a.t, time.Now().Before(end), "%s: want %q, got %q", a.name, want, last)
		a.tell(verb, path)
		last = a.answer()
	}
}

// testGroups has members of docent and of Curator in one group.
func testGroups(t *testing.T, f *fleet) {
	each(t, docent, java, func(t *testing.T, first, second speaker) {
		path := newPath(t)
		one, other := f.peers[first.language].actor(t), f.peers[second.language].actor(t)
		one.do("joined", "join", path, "one", "1")
		one.sees("members", path, "one=1")
		other.do("joined", "join", path, "two", "2")
		for _, a := range []*actor{one, other} {
			a.sees("members", path, "one=1", "two=2")
		}
		one.do("set", "payload", path, "1b")
		for _, a := range []*actor{one, other} {
			a.sees("members", path, "one=1b", "two=2")
		}
		one.do("left", "leave", path)
		other.sees("members", path, "two=2")
		other.do("left", "leave", path)
	})
}

// testParties has members of docent and of kazoo in one party.
func testParties(t *testing.T, f *fleet) {
	path := newPath(t)
	ours, theirs := f.peers["docent"].actor(t), f.peers["kazoo"].actor(t)
	ours.do("joined", "join-party", path, "one", "-")
	theirs.do("joined", "join", path, "two", "-")
	ours.sees("members-party", path, "one=", "two=")
	theirs.sees("members", path, "one=", "two=")
	ours.do("left", "leave", path)
	theirs.sees("members", path, "two=")
	theirs.do("left", "leave", path)
	ours.sees("members-party", path)
}

// testCrashedMembers pauses the process of a member for longer than its session lasts, and later
// kills it.
func testCrashedMembers(t *testing.T, f *fleet) {
	const brief = 6 * time.Second // the session timeout
	each(t, docent, java, func(t *testing.T, first, second speaker) {
		path := newPath(t)
		crashing := f.start(t, first.language, f.ensemble.Connect(), brief, f.resources.addr())
		one, other := crashing.actor(t), f.peers[second.language].actor(t)
		other.do("joined", "join", path, "two", "2")
		one.do("joined", "join", path, "one", "1")
		other.sees("members", path, "one=1", "two=2")
		require.NoError(t, crashing.cmd.Process.Signal(syscall.SIGSTOP))
		other.sees("members", path, "two=2")
		require.NoError(t, crashing.cmd.Process.Signal(syscall.SIGCONT))
		other.sees("members", path, "one=1", "two=2")
		crashing.kill()
		other.sees("members", path, "two=2")
		other.do("left", "leave", path)
	})
}

// testKeptNodes keeps a node by docent and by Curator. docent waits until the node of Curator is
// deleted. Curator adopts the node of docent, which writes its own data again.
func testKeptNodes(t *testing.T, f *fleet) {
	each(t, docent, java, func(t *testing.T, first, second speaker) {
		path := newPath(t)
		one, other := f.peers[first.language].actor(t), f.peers[second.language].actor(t)
		one.do("kept", "keep", path, first.language)
		before := f.shows(t, path, first.language)
		require.NotZero(t, before.EphemeralOwner)
		other.do("kept", "keep", path, second.language)
		if first == docent {
			testzk.Eventually(t, func() bool {
				_, stat, err := f.observer.Get(path)
				return err == nil && stat.Version >= 2
			}, "Curator has not written its data, or docent not its own again")
		}
		after := f.shows(t, path, first.language)
		require.Equal(t, before.EphemeralOwner, after.EphemeralOwner)
		one.do("dropped", "drop", path)
		last := f.shows(t, path, second.language)
		require.NotEqual(t, before.EphemeralOwner, last.EphemeralOwner)
		other.do("dropped", "drop", path)
		exists, _, err := f.observer.Exists(path)
		require.NoError(t, err)
		require.False(t, exists)
	})
}

// shows waits until a node has the data, and returns its Stat.
func (f *fleet) shows(t *testing.T, path, data string) (found *zk.Stat) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		text, stat, err := f.observer.Get(path)
		found = stat
		return err == nil && string(text) == data
	}, "want %s", data)
	return found
}
