package page

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/zktest/fault"
)

const (
	patience = testzk.Patience
	tick     = 20 * time.Millisecond
)

func TestAnUnchangedTreeCostsNoRequests(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	s := newSite(t, testzk.Connected(t, network.Addr()), func(s *Settings) { s.Always = true })
	testlock.Held(t, newMutex(t, connected(t), s.root+"/a"))
	s.shows("/", s.root+"/a</a>")
	requests := func() int { return network.Requests()[fault.OpMultiRead] }
	testzk.Eventually(t, func() bool { // an event of the lock may come late, and is read once
		before := requests()
		for range 50 {
			s.get("/")
			s.get("/metrics")
		}
		return requests() == before
	}, "pages make requests")
}

func (t *tree) readings() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.work.readings
}

// hurry has the tree make no pauses between readings. They are ten times as long as a reading, which
// can be minutes on a busy machine.
func (t *tree) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share = 1
}

// Only what has changed is read, not the whole tree.
func TestAChangeOfOneLockReadsThatLock(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	s := newSite(t, testzk.Connected(t, network.Addr()), nil)
	client := connected(t)
	const locks = 2000
	plant(t, client, s.root, locks) // while nothing looks
	s.shows("/metrics", fmt.Sprintf("docent_tree_objects{kind=\"mutex\",state=\"held\"} %d\n", locks))
	reads := func() int { return network.Requests()[fault.OpMultiRead] }
	before := reads()
	testlock.Held(t, newMutex(t, client, s.root+"/000007/below"))
	s.shows("/metrics", fmt.Sprintf("docent_tree_objects{kind=\"mutex\",state=\"held\"} %d\n", locks+1))
	testlock.Held(t, newMutex(t, connected(t), s.root+"/new"))
	s.shows("/metrics", fmt.Sprintf("docent_tree_objects{kind=\"mutex\",state=\"held\"} %d\n", locks+2))
	assert.Less(t, reads()-before, locks*4/100, "as many as a walk of all")
}

// plant creates locks with a holder each, in transactions of many.
func plant(t testing.TB, c *framework.Client, root string, locks int) {
	t.Helper()
	create(t, c, root, "")
	var ops []framework.Op
	for i := range locks {
		dir := fmt.Sprintf("%s/%06d", root, i)
		node := dir + "/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000"
		ops = append(ops,
			framework.CreateOp(dir, nil), framework.CreateOp(node, []byte("10.0.0.3"), framework.Ephemeral()))
		if len(ops) > 500 || i == locks-1 {
			_, err := c.Multi(t.Context(), ops...)
			require.NoError(t, err)
			ops = nil
		}
	}
}

// A page that is not looked at reads nothing, and has no watch.
func TestNothingIsReadWhileNothingLooks(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	client := testzk.Connected(t, network.Addr())
	tree := startTree(client, testzk.Path(t), time.Millisecond, false)
	defer tree.close()
	tree.mu.Lock()
	tree.linger = 0
	tree.mu.Unlock()
	leave := tree.join()
	testzk.Eventually(t, tree.isLive, "the picture is not read")
	leave()
	testzk.Eventually(t, func() bool { return !tree.isLive() }, "the picture is kept current")
	read := tree.readings()
	create(t, connected(t), tree.root+"/a", "")
	assert.Equal(t, read, tree.readings())
	leave = tree.join()
	defer leave()
	testzk.Eventually(t, func() bool {
		now, _ := tree.look()
		_, there := now.find(tree.root + "/a")
		return there
	}, "the new node is not found")
}

// Whatever changes, the picture becomes that of a walk.
func TestPicturesOfChangesAreThoseOfWalks(t *testing.T) {
	t.Parallel()
	client, other := connected(t), connected(t)
	tree := startTree(client, testzk.Path(t), time.Millisecond, true)
	defer tree.close()
	tree.hurry()
	create(t, other, tree.root+"/keep", "")
	const guid = "_c_8026b758-0c64-4418-a4a7-a40067d845c1-"
	random := rand.New(rand.NewPCG(rand.Uint64(), 2))
	names := []string{
		"a", "b", "c", "leases", "locks", guid + "lock-0000000001", guid + "lock-0000000002", guid + "lease-0000000001",
		guid + "latch-0000000001", guid + "__READ__0000000001", "m1", "a-b", "a.b",
	}
	for i := range fewBelow + 20 { // more than are read for a change of the root
		create(t, other, fmt.Sprintf("%s/big/%03d", tree.root, i), "")
	}
	for range 30 {
		for range random.IntN(8) {
			path := tree.root + []string{"", "/big"}[random.IntN(2)]
			for range 1 + random.IntN(3) {
				path += "/" + names[random.IntN(len(names))]
			}
			if random.IntN(3) == 0 {
				_ = other.DeleteRecursive(t.Context(), path)
				continue
			}
			opts := []framework.CreateOption{framework.Parents()}
			if random.IntN(2) == 0 {
				opts = append(opts, framework.Ephemeral())
			}
			_, _ = other.Create(t.Context(), path, []byte([]string{"", "10.0.0.1", "3"}[random.IntN(3)]), opts...)
		}
		testzk.Everywhere(t)
		want := walked(t, other, tree.root)
		if !assert.Eventually(t, func() bool {
			now, _ := tree.look()
			return slices.Equal(linesOf(now.items), want)
		}, patience, tick) {
			now, _ := tree.look()
			require.Equal(t, strings.Join(want, "\n"), strings.Join(linesOf(now.items), "\n"))
		}
	}
}

func walked(t testing.TB, c *framework.Client, root string) []string {
	t.Helper()
	var items []item
	for o, err := range inspect.Walk(context.Background(), c, root, inspect.WithAll()) {
		require.NoError(t, err)
		items = append(items, newItem(o, nil))
	}
	return linesOf(items)
}

func linesOf(items []item) (lines []string) {
	for _, i := range items {
		line := fmt.Sprint(i.Path, i.Kind, i.State, i.Holders, i.Waiters, i.Foreign)
		for _, n := range i.Nodes {
			line += fmt.Sprint(" ", n.Path, n.Token, n.Data)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPathsAreInTheOrderOfAWalk(t *testing.T) {
	t.Parallel()
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/a/c", "/a!", "/a-b", "/a-b/c", "/a.b", "/ab", "/b"}
	for i, a := range paths {
		for k, b := range paths {
			assert.Equal(t, i < k, compareAsWalked(a, b) < 0, "%s %s", a, b)
			assert.Equal(t, i == k, compareAsWalked(a, b) == 0, "%s %s", a, b)
		}
	}
	items := make([]item, len(paths))
	for i, path := range paths {
		items[i] = newItem(&inspect.Object{Path: path}, nil)
	}
	for path, want := range map[string][2]int{
		"/": {0, 11}, "/a": {1, 5}, "/a/b": {2, 4}, "/a/a": {2, 2}, "/a-b": {6, 8}, "/c": {11, 11},
	} {
		from, to := span(items, path)
		assert.Equal(t, want, [2]int{from, to}, path)
	}
}

func TestHandoversOfTheLastMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	h := newHandovers(now)
	assert.False(t, h.busy())
	for range 10 {
		h.add("/a", now)
		now = now.Add(slotTime)
	}
	h.add("/b", now)
	assert.Equal(t, map[string]int{"/a": 10, "/b": 1}, h.sums(now))
	assert.Equal(t, map[string]int{"/a": 7, "/b": 1}, h.sums(now.Add(5*slotTime-1)))
	assert.Equal(t, map[string]int{"/b": 1}, h.sums(now.Add(time.Minute-1)))
	assert.True(t, h.busy())
	assert.Empty(t, h.sums(now.Add(2*time.Minute)))
	assert.False(t, h.busy())
	h.add("/a", now.Add(time.Hour))
	h.add("/a", now) // the clock was set back
	assert.Equal(t, map[string]int{"/a": 2}, h.sums(now))
}

func TestAges(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m 0s", time.Hour - 1: "59m 59s", time.Hour: "1h 0m",
		25 * time.Hour: "1d 1h",
	} {
		assert.Equal(t, want, age(d))
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		assert.Equal(t, want, thousands(n))
	}
}

func TestAListIsFilteredSortedAndPaged(t *testing.T) {
	t.Parallel()
	client := connected(t)
	s := newSite(t, client, nil)
	plant(t, client, s.root, 250)
	testlock.Queue(t, newMutex(t, connected(t), s.root+"/000249"))
	s.shows("/", `<a href="?state=waited-for">1</a>`)
	keys := func(address string) int { return strings.Count(s.get(address).Body.String(), "data-key=") }
	assert.Equal(t, rowsPerPage, keys("/"))
	assert.Equal(t, 50, keys("/?page=3"))
	assert.Equal(t, 50, keys("/?page=99"), "the last page")
	assert.Equal(t, rowsPerPage, keys("/?page=-1"))
	assert.Equal(t, 1, keys("/?state=waited-for"))
	assert.Equal(t, 0, keys("/?state=abandoned"))
	assert.Equal(t, 0, keys("/?kind=rwlock"))
	assert.Equal(t, 10, keys("/?q=/00001"))
	assert.Equal(t, 1, keys("/?q=000012+10.0.0.3"))
	assert.Equal(t, 0, keys("/?q=000012+10.0.0.4"))
	first := s.get("/?sort=waiters").Body.String()
	assert.Regexp(t, `(?s)<tbody role="rowgroup">\s*<tr role="row" data-key="`+s.root+`/000249"`, first)
	assert.Contains(t, s.get("/?q=0&page=2").Body.String(), `href="?page=3&amp;q=0"`)
}
