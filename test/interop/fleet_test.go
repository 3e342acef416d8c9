package interop

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

// calm is the session timeout of peers that are not killed.
const calm = 20 * time.Second

// fleet is peers of several languages on one server.
type fleet struct {
	programs
	ensemble  *ensemble.Ensemble
	observer  *testzk.Conn
	resources *resources
	peers     map[string]*peer
}

// assemble starts a server, and a peer of each of the languages.
func assemble(t testing.TB, all programs, session time.Duration, languages []string, opts ...ensemble.Option) *fleet {
	t.Helper()
	f := &fleet{programs: all, peers: map[string]*peer{}}
	f.ensemble = ensemble.Start(t, 1, append(opts, ensemble.WithTick(200*time.Millisecond))...)
	f.observer = testzk.ObserverOf(t, f.ensemble.Connect())
	f.resources = startResources(t)
	for _, language := range languages {
		f.peers[language] = all.start(t, language, f.ensemble.Connect(), session, f.resources.addr())
	}
	return f
}

// TestFleet uses one fleet for all tests that do not stop the server.
func TestFleet(t *testing.T) {
	realzk.Need(t)
	all := findPrograms(t)
	t.Run("calm", func(t *testing.T) {
		t.Parallel()
		f := assemble(t, all, calm, []string{"docent", "java", "kazoo"})
		for name, test := range map[string]func(*testing.T, *fleet){
			"pairs": testPairs, "downgrade": testDowngrades, "shared limit": testSharedLimit,
			"hand-overs": testHandOvers, "names": testNames,
			"matrix": testMatrix,
			"groups": testGroups, "parties": testParties, "crashed members": testCrashedMembers,
			"kept nodes": testKeptNodes, "services": testServices, "caches": testCaches,
			"inspection": testInspection, "operators": testOperators,
			"numbers": testNumbers, "numbers at once": testNumbersAtOnce,
			"barriers": testBarriers, "double barriers": testDoubleBarriers,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, f)
			})
		}
	})
	t.Run("rounds", func(t *testing.T) {
		t.Parallel()
		testRounds(t, all)
	})
	t.Run("accidents", func(t *testing.T) {
		t.Parallel()
		testAccidents(t, all)
	})
}

var paths atomic.Int64

// newPath returns a path that no other test uses.
func newPath(t testing.TB) string {
	return fmt.Sprintf("/%d-%s", paths.Add(1), strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == ',' || r == '#' {
			return '-'
		}
		return r
	}, t.Name()))
}

// speaker is a participant of a test: a language, and the names of nodes that it uses.
type speaker struct{ language, names string }

// kind returns the speaker's name of a kind of lock.
func (s speaker) kind(kind string) string { return s.names + kind }

// kind is a kind of lock.
type kind struct {
	name string
	role string
	// args returns the arguments with which a peer makes a lock at a path.
	args func(path string) []any
	// queue returns the parent of the waiters' nodes.
	queue func(path string) string
}

func plain(path string) []any     { return []any{path} }
func itself(path string) string   { return path }
func guarded(path string) string  { return path + "/locks" }
func firstOf(path string) string  { return path + "/a" }
func both(path string) []any      { return []any{path + "/a," + path + "/b"} }
func candidate(path string) []any { return []any{path, "an-id"} }

func permits(n int) func(path string) []any {
	return func(path string) []any { return []any{path, n} }
}

var (
	mutexKind     = kind{"mutex", "alone", plain, itself}
	readKind      = kind{"read", "shared", plain, itself}
	writeKind     = kind{"write", "alone", plain, itself}
	semMutexKind  = kind{"semaphore-mutex", "alone", plain, guarded}
	oneKind       = kind{"semaphore", "one-of-1", permits(1), guarded}
	twoKind       = kind{"semaphore", "one-of-2", permits(2), guarded}
	multiKind     = kind{"multi", "alone", both, firstOf}
	latchKind     = kind{"latch", "alone", candidate, itself}
	selectorKind  = kind{"selector", "alone", candidate, itself}
	lockName      = "l"
	otherLockName = "m"
)

// contender is an actor with a lock.
type contender struct {
	*actor
	lock string
}

// contender returns a new actor with a lock.
func (f *fleet) contender(t testing.TB, s speaker, k kind, path string) contender {
	t.Helper()
	c := contender{f.peers[s.language].actor(t), lockName}
	c.gets(c.lock, s, k, path)
	return c
}

// gets makes another lock for an actor.
func (a *actor) gets(lock string, s speaker, k kind, path string) {
	a.t.Helper()
	a.do("made", append([]any{"make", lock, s.kind(k.name)}, k.args(path)...)...)
}

func (c contender) holds()    { c.t.Helper(); c.do("held", "acquire", c.lock, -1) }
func (c contender) releases() { c.t.Helper(); c.do("released", "release", c.lock) }
func (c contender) isBusy()   { c.t.Helper(); c.do("busy", "acquire", c.lock, 0) }

// children returns the number of nodes below a path.
func (f *fleet) children(t testing.TB, path string) int {
	t.Helper()
	children, _, err := f.observer.Children(path)
	if err == zk.ErrNoNode {
		return 0
	}
	require.NoError(t, err)
	return len(children)
}

// queues lets a contender acquire, and returns when its node is in the queue.
func (f *fleet) queues(c contender, k kind, path string) {
	c.t.Helper()
	before := f.children(c.t, k.queue(path))
	c.tell("acquire", c.lock, -1)
	f.awaitNodes(c.t, k, path, before+1)
	require.True(c.t, c.waits(), "%s does not wait", c.name)
}

// awaitNodes waits until n nodes are in the queue.
func (f *fleet) awaitNodes(t testing.TB, k kind, path string, n int) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		return f.children(t, k.queue(path)) == n
	}, "want %d nodes in %s", n, k.queue(path))
}

// wins waits until a contender that waits has the lock.
func (c contender) wins() {
	c.t.Helper()
	require.Equal(c.t, "held", c.answer(), c.name)
}

// staysOut checks for a while that a waiting contender is not granted the lock.
func (c contender) staysOut() {
	c.t.Helper()
	select {
	case answer := <-c.answers:
		require.Fail(c.t, c.name+" does not wait", answer)
	case <-time.After(200 * time.Millisecond):
	}
}

func bases(nodes []string) []string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = path.Base(node)
	}
	return names
}

// clears waits until there are no nodes below a path.
func (f *fleet) clears(t testing.TB, path string) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		n, err := f.ephemerals(path)
		return err == nil && n == 0
	}, "there is still a node below %s", path)
}

func (f *fleet) ephemerals(path string) (n int, err error) {
	exists, stat, err := f.observer.Exists(path)
	if err != nil || !exists {
		return 0, err
	}
	if stat.EphemeralOwner != 0 {
		return 1, nil
	}
	children, _, err := f.observer.Children(path)
	if err != nil && err != zk.ErrNoNode {
		return 0, err
	}
	for _, child := range children {
		more, err := f.ephemerals(path + "/" + child)
		if err != nil {
			return 0, err
		}
		n += more
	}
	return n, nil
}

// vanishes waits until all nodes of a lock are deleted, on a server that reaps containers. kazoo's
// parents are no containers and remain.
func (f *fleet) vanishes(t testing.TB, path string) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		exists, _, err := f.observer.Exists(path)
		return err == nil && !exists
	}, "%s is left", path)
}

// each runs a test for both directions of a pair.
func each(t *testing.T, one, other speaker, test func(t *testing.T, first, second speaker)) {
	for _, pair := range [][2]speaker{{one, other}, {other, one}} {
		name := fmt.Sprintf("%s%s and %s%s", pair[0].language, pair[0].names, pair[1].language, pair[1].names)
		t.Run(strings.ReplaceAll(name, "-", ""), func(t *testing.T) {
			t.Parallel()
			test(t, pair[0], pair[1])
		})
	}
}

var (
	docent = speaker{"docent", ""}
	java   = speaker{"java", ""}
	kazoo  = speaker{"kazoo", ""}
	// These share locks with kazoo.
	docentAsKazoo  = speaker{"docent", "kazoo-"}
	awareKazoo     = speaker{"kazoo", "aware-"}
	kazooAsCurator = speaker{"kazoo", "curator-"}
)

// isOf reports whether a language is that of one of the speakers.
func isOf(language string, speakers ...speaker) bool {
	return slices.ContainsFunc(speakers, func(s speaker) bool { return s.language == language })
}
