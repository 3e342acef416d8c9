package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/barrier"
)

// barriers has the double barriers that an actor of docent is inside, by path.
type barriers map[string]*barrier.Entry

func (b barriers) act(ctx context.Context, c *framework.Client, verb string, args []string) (answer string, err error) {
	path := args[0]
	switch verb {
	case "enter":
		return b.enter(ctx, c, path, args[1])
	case "exit":
		return "outside", b[path].Leave(ctx)
	}
	gate, err := barrier.New(c, path)
	if err != nil {
		return "", err
	}
	switch verb {
	case "set-barrier":
		return "set", gate.Set(ctx)
	case "remove-barrier":
		return "removed", gate.Remove(ctx)
	}
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	defer cancel()
	if err = gate.Wait(limited); errors.Is(err, context.DeadlineExceeded) {
		return "closed", nil
	}
	return "open", err
}

func (b barriers) enter(ctx context.Context, c *framework.Client, path, number string) (answer string, err error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", err
	}
	d, err := barrier.NewDouble(c, path, n)
	if err == nil {
		b[path], err = d.Enter(ctx)
	}
	return "inside", err
}

// testBarriers has each two of docent, Curator and kazoo at one barrier.
func testBarriers(t *testing.T, f *fleet) {
	for _, pair := range [][2]speaker{{docent, java}, {docent, kazoo}} {
		each(t, pair[0], pair[1], func(t *testing.T, first, second speaker) {
			path := newPath(t)
			setter, waiter := f.peers[first.language].actor(t), f.peers[second.language].actor(t)
			waiter.do("open", "wait-barrier", path, patience.Milliseconds())
			setter.do("set", "set-barrier", path)
			waiter.do("set", "set-barrier", path)
			waiter.do("closed", "wait-barrier", path, 1)
			waiter.tell("wait-barrier", path, patience.Milliseconds())
			setter.do("removed", "remove-barrier", path)
			require.Equal(t, "open", waiter.answer())
			waiter.do("removed", "remove-barrier", path)
		})
	}
}

// testDoubleBarriers has two members of docent and two of another library in a double barrier, in
// any order. kazoo deletes the node ready when its first member leaves, and its members do not know
// the nodes of the others from their own: it takes part as long as exactly n members come.
func testDoubleBarriers(t *testing.T, f *fleet) {
	for _, other := range []speaker{java, kazoo} {
		for order := range 4 {
			t.Run(fmt.Sprintf("%s %d", other.language, order), func(t *testing.T) {
				t.Parallel()
				path := newPath(t)
				languages := []string{"docent", "docent", other.language, other.language}
				rand.Shuffle(len(languages), func(i, j int) { languages[i], languages[j] = languages[j], languages[i] })
				t.Log(languages)
				var members []*actor
				for _, language := range languages {
					members = append(members, f.peers[language].actor(t))
				}
				for i, m := range members {
					for _, before := range members[:i] {
						require.True(t, before.waits(), "%s has entered", before.name)
					}
					m.tell("enter", path, len(members))
					if i < len(members)-1 {
						f.awaitChildren(t, path, i+1)
					}
				}
				for _, m := range members {
					require.Equal(t, "inside", m.answer(), m.name)
				}
				for i, m := range members {
					for _, before := range members[:i] {
						require.True(t, before.waits(), "%s has left", before.name)
					}
					m.tell("exit", path)
				}
				for _, m := range members {
					require.Equal(t, "outside", m.answer(), m.name)
				}
				require.Zero(t, f.children(t, path))
			})
		}
	}
}

// awaitChildren waits until a node has n children.
func (f *fleet) awaitChildren(t testing.TB, path string, n int) {
	t.Helper()
	testzk.Eventually(t, func() bool { return f.children(t, path) == n }, "want %d nodes in %s", n, path)
}

const (
	// roundsVariable sets the number of rounds of testRounds.
	roundsVariable = "DOCENT_BARRIER_ROUNDS"
	brief          = 12 * time.Second // the session timeout of the peers of testRounds
)

func roundsWanted(t *testing.T) int {
	text := os.Getenv(roundsVariable)
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, roundsVariable)
	return n
}

// crew is the members of one process.
type crew struct {
	*peer
	members []*actor
}

// rounds has members of docent and of Curator enter and leave one double barrier after the other.
type rounds struct {
	*fleet
	t       *testing.T
	crews   []*crew
	deaths  int
	tooSoon int // members of Curator that have left before all
}

// testRounds has five members of docent and five of Curator in each of many rounds. In some rounds a
// process with two or three of them is killed: while its members wait for others, when they are
// inside, or when others leave. Then another process takes its place. No member enters before all
// ten are there, none of docent leaves before the others, and none hangs.
func testRounds(t *testing.T, all programs) {
	r := &rounds{fleet: assemble(t, all, brief, nil), t: t}
	for _, c := range []struct {
		language string
		members  int
	}{{"docent", 3}, {"java", 3}, {"docent", 2}, {"java", 2}} {
		r.crews = append(r.crews, r.hire(c.language, c.members))
	}
	begun, wanted := time.Now(), roundsWanted(t)
	for round := range wanted {
		r.round(round)
	}
	t.Logf("%d rounds in %v, %d processes killed; members of Curator that have left before all others: %d",
		wanted, time.Since(begun).Round(time.Second), r.deaths, r.tooSoon)
}

// hire starts a process.
func (r *rounds) hire(language string, members int) *crew {
	c := &crew{peer: r.start(r.t, language, r.ensemble.Connect(), brief, r.resources.addr())}
	for range members {
		c.members = append(c.members, c.actor(r.t))
	}
	return c
}

// replace kills a process, and starts another one.
func (r *rounds) replace(i int) {
	r.fell(i)
	r.succeed(i)
}

// fell kills a process.
func (r *rounds) fell(i int) {
	r.deaths++
	r.crews[i].kill()
}

// succeed starts another process for one that was killed.
func (r *rounds) succeed(i int) {
	old := r.crews[i]
	r.crews[i] = r.hire(old.language, len(old.members))
}

// accident is when a process is killed.
type accident int

const (
	none           accident = iota
	beforeAllCome           // its members are replaced in the same round
	whileWaiting            // its members still count when the last one comes
	inside                  // of the others, nothing has begun to leave
	whileTheyLeave          // one member has not begun to leave
)

// accidentEvery is how many rounds there are for each accident.
const accidentEvery = 6

func accidentOf(round int) accident {
	if round%accidentEvery != accidentEvery-1 {
		return none
	}
	return accident(1 + round/accidentEvery%4)
}

func (r *rounds) round(number int) {
	path, victim := fmt.Sprint("/round-", number), rand.IntN(len(r.crews))
	what := accidentOf(number)
	last := rand.IntN(len(r.crews)) // of its process, one member comes and leaves last
	for last == victim {
		last = rand.IntN(len(r.crews))
	}
	slow := r.crews[last].members[0]
	members := r.without(slow)
	for _, m := range members {
		m.tell("enter", path, len(members)+1)
	}
	r.gather(number, path, members)
	if what == beforeAllCome {
		r.replace(victim)
		r.awaitChildren(r.t, path, len(members)-len(r.crews[victim].members))
		for _, m := range r.crews[victim].members {
			m.tell("enter", path, len(members)+1)
		}
		members = r.without(slow)
		r.gather(number, path, members)
	}
	replaced := r.crews[victim].members
	if what == whileWaiting {
		r.fell(victim)
	}
	slow.tell("enter", path, len(members)+1)
	present := append(members, slow)
	if what == whileWaiting {
		present = r.after(present, replaced)
	}
	for _, m := range present {
		require.Equal(r.t, "inside", m.answer(), "round %d: %s", number, m.name)
	}
	switch what {
	case whileWaiting: // the start would take longer than the nodes of those that were killed are there
		r.succeed(victim)
	case inside:
		present = r.after(present, replaced)
		r.replace(victim)
	}
	r.leave(number, path, present, slow, func() {
		if what == whileTheyLeave {
			r.replace(victim)
		}
	}, replaced)
}

// gather waits until members have come, of which none enters.
func (r *rounds) gather(number int, path string, members []*actor) {
	testzk.Eventually(r.t, func() bool {
		for _, m := range members {
			if !m.waits() {
				require.FailNow(r.t, "it has not waited", "round %d: %s: %s", number, m.name, m.answer())
			}
		}
		return r.children(r.t, path) == len(members)
	}, "round %d: not all have come", number)
}

// leave has the members leave, slow as the last one. accident comes before that.
func (r *rounds) leave(number int, path string, present []*actor, slow *actor, accident func(), victims []*actor) {
	deaths := r.deaths
	for _, m := range present {
		if m != slow {
			m.tell("exit", path)
		}
	}
	accident()
	if r.deaths > deaths {
		present = r.after(present, victims)
	}
	testzk.Eventually(r.t, func() bool { return r.children(r.t, path) <= 3 },
		"round %d: the members do not leave", number) // the lowest, the slow one and ready
	for _, m := range present {
		if m == slow || m.waits() {
			continue
		}
		require.Equal(r.t, "java", m.language, "round %d: %s has left before %s", number, m.name, slow.name)
		r.tooSoon++
	}
	slow.tell("exit", path)
	for _, m := range present {
		require.Equal(r.t, "outside", m.answer(), "round %d: %s", number, m.name)
	}
	r.clears(r.t, path)
}

// without returns all members but one.
func (r *rounds) without(one *actor) (others []*actor) {
	for _, c := range r.crews {
		others = append(others, c.members...)
	}
	return r.after(others, []*actor{one})
}

// after returns the members without some of them.
func (r *rounds) after(members, without []*actor) (rest []*actor) {
	gone := map[*actor]bool{}
	for _, m := range without {
		gone[m] = true
	}
	for _, m := range members {
		if !gone[m] {
			rest = append(rest, m)
		}
	}
	return rest
}
