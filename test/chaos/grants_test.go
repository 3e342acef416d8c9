package chaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// grants counts what workers were granted in a round, by kind and lock.
type grants struct {
	wanted []string // that each round must have
	count  map[string]int
	sticky map[int64]bool // the tokens of sticky nodes
}

// keptSticky is a grant of a node that the worker has kept since its last hold. One goroutine of each
// worker acquires the sticky lock, so a token that comes again is of a kept node.
const keptSticky = "kept node of " + siegeSticky

// newGrants returns no grants yet of all that the acquirers can get, of leaderships and of additions.
func newGrants(all []acquirer) *grants {
	g := &grants{wanted: []string{kindAdd, keptSticky}, count: map[string]int{}, sticky: map[int64]bool{}}
	for _, a := range all {
		g.want(a.kind, a.locks[0])
	}
	g.want(kindTerm, siegeElection)
	g.want(kindLatch, siegeLatch)
	return g
}

// want adds grants of a kind, and writes under them if there are such writes.
func (g *grants) want(kind, lock string) {
	g.wanted = append(g.wanted, kind+" of "+lock)
	if writesToken(kind) {
		g.wanted = append(g.wanted, "guarded write with "+kind+" of "+lock)
	}
}

// add counts a hold that was valid for a moment, or an addition.
func (g *grants) add(t turn) {
	switch {
	case t.Kind == kindAdd:
		if t.Lost == "" {
			g.count[kindAdd]++
		}
		return
	case t.To >= t.From:
		g.count[t.Kind+" of "+t.Lock]++
		if t.Kind == kindSticky {
			g.addSticky(t.Token)
		}
	}
	if t.Wrote != 0 {
		g.count["guarded write with "+t.Kind+" of "+t.Lock]++
	}
}

func (g *grants) addSticky(token int64) {
	if g.sticky[token] {
		g.count[keptSticky]++
	}
	g.sticky[token] = true
}

// missing returns what is wanted and did not come, as text.
func (g *grants) missing() string {
	var none []string
	for _, what := range g.wanted {
		if g.count[what] == 0 {
			none = append(none, what)
		}
	}
	return strings.Join(none, ", ")
}

func TestGrantsThatAreMissingAreNamed(t *testing.T) {
	all, err := acquirers(testzk.Connected(t, zktest.Start(t).Addr()))
	require.NoError(t, err)
	g := newGrants(all)
	for _, a := range all {
		require.Contains(t, g.missing(), a.kind+" of "+a.locks[0])
		g.add(turn{Kind: a.kind, Lock: a.locks[0], From: 2, To: 1, Lost: "at once"})
		require.Contains(t, g.missing(), a.kind+" of "+a.locks[0], "the hold was never valid")
	}
	g.add(turn{Kind: kindAdd, Lost: "unknown"})
	require.Contains(t, g.missing(), kindAdd)
	for _, a := range all {
		g.add(turn{Kind: a.kind, Lock: a.locks[0], From: 1, To: 1, Wrote: 1})
	}
	g.add(turn{Kind: kindSticky, Lock: siegeSticky, From: 2, To: 2, Token: 1})
	require.Contains(t, g.missing(), keptSticky, "the node is another one")
	g.add(turn{Kind: kindSticky, Lock: siegeSticky, From: 3, To: 3, Token: 1})
	g.add(turn{Kind: kindAdd})
	g.add(turn{Kind: kindTerm, Lock: siegeElection, Wrote: 1})
	g.add(turn{Kind: kindLatch, Lock: siegeLatch})
	require.Equal(t, "guarded write with latch of "+siegeLatch, g.missing())
}
