package interop

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/counter"
)

// add adds to a number of docent, or appends to a value.
func add(ctx context.Context, c *framework.Client, kind, path, delta string) (string, error) {
	if kind == "value" {
		return appendTo(ctx, c, path, delta)
	}
	n, err := strconv.ParseInt(delta, 10, 64)
	if err != nil {
		return "", err
	}
	if kind == "count" || kind == "integer" {
		number, err := counter.NewCount(c, path, 0)
		if err != nil {
			return "", err
		}
		sum, err := number.Add(ctx, int32(n))
		return fmt.Sprint("number ", sum), err
	}
	var opts []counter.Option
	if kind == "text" {
		opts = append(opts, counter.WithText())
	}
	number, err := counter.NewAtomic(c, path, opts...)
	if err != nil {
		return "", err
	}
	sum, err := number.Add(ctx, n)
	return fmt.Sprint("number ", sum), err
}

func appendTo(ctx context.Context, c *framework.Client, path, more string) (string, error) {
	value, err := counter.NewValue(c, path, nil)
	if err != nil {
		return "", err
	}
	now, err := value.GetVersioned(ctx)
	for wrote := false; err == nil && !wrote; {
		now, wrote, err = value.CompareAndSet(ctx, now, append(now.Value, more...))
	}
	return "value " + string(now.Value), err
}

// numberKinds are the kinds of numbers that a language and docent share.
var numberKinds = map[speaker][]string{
	java:  {"atomic", "integer", "count"},
	kazoo: {"count", "text"},
}

// testNumbers has docent and another library add to one number in turn.
func testNumbers(t *testing.T, f *fleet) {
	for other, kinds := range numberKinds {
		each(t, docent, other, func(t *testing.T, first, second speaker) {
			one, two := f.peers[first.language].actor(t), f.peers[second.language].actor(t)
			for _, kind := range kinds {
				path := newPath(t) + "-" + kind
				sum := 0
				for _, delta := range []int{1, 41, -50, 1 << 20} {
					for _, a := range []*actor{one, two, two, one} {
						sum += delta
						a.do(fmt.Sprint("number ", sum), "add", kind, path, delta)
					}
				}
			}
			if other == java {
				path := newPath(t) + "-value"
				one.do("value a", "add", "value", path, "a")
				two.do("value ab", "add", "value", path, "b")
				one.do("value abc", "add", "value", path, "c")
			}
		})
	}
}

// testNumbersAtOnce has docent and another library add to one number at the same time.
func testNumbersAtOnce(t *testing.T, f *fleet) {
	const adds = 50
	for other, kinds := range numberKinds {
		for _, kind := range kinds {
			t.Run(other.language+" "+kind, func(t *testing.T) {
				t.Parallel()
				path := newPath(t)
				ours, theirs := f.peers[docent.language], f.peers[other.language]
				actors := []*actor{ours.actor(t), ours.actor(t), theirs.actor(t)}
				sum := 0
				for range adds {
					for _, a := range actors {
						a.tell("add", kind, path, 1)
					}
					for _, a := range actors {
						switch answer := a.answer(); {
						case strings.HasPrefix(answer, "number "):
							sum++
						case a.language != "kazoo": // whose Counter fails if another client was faster
							require.Fail(t, answer, a.name)
						}
					}
				}
				actors[0].do(fmt.Sprint("number ", sum), "add", kind, path, 0)
			})
		}
	}
}

// addsVariable sets the number of additions by each program.
const addsVariable = "INTEROP_ADDS"

// ofDocent is what docent adds. Curator adds 1, and perhaps twice after a lost answer.
const ofDocent = 1 << 32

// Two processes of docent and two of Curator add to one number, while processes and the server are
// killed. What docent has added is exact: each addition with an answer is in the sum once. Of the
// addition that a killed process has not answered nothing is known.
func TestNumberOfTwoLanguagesIsExactThroughKills(t *testing.T) {
	realzk.Need(t)
	adds := 200
	if text := os.Getenv(addsVariable); text != "" {
		var err error
		adds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	f := assemble(t, findPrograms(t), long, nil)
	n := &numberTest{fleet: f, t: t, path: "/numbers/shared", adds: int64(adds)}
	var working sync.WaitGroup
	for _, language := range []string{"docent", "docent", "java", "java"} {
		p := f.start(t, language, f.ensemble.Connect(), long, f.resources.addr())
		working.Go(func() { n.work(p) })
	}
	// killed ones have a short session timeout, and no successor waits for their sessions
	for i := range 3 {
		for _, language := range []string{"docent", "java"} {
			p := f.start(t, language, f.ensemble.Connect(), short, f.resources.addr())
			var ended sync.WaitGroup
			ended.Go(func() { n.work(p) })
			n.awaitShare(int64(2*i+1) * n.adds / 8)
			p.kill()
			ended.Wait()
		}
		server := f.ensemble.Servers()[0]
		require.NoError(t, server.Kill())
		require.NoError(t, server.Start(testzk.Context(t)))
	}
	working.Wait()
	last := f.start(t, "docent", f.ensemble.Connect(), long, f.resources.addr()).actor(t)
	last.tell("add", "atomic", n.path, 0)
	sum, err := strconv.ParseInt(strings.TrimPrefix(last.answer(), "number "), 10, 64)
	require.NoError(t, err)
	ours, theirs := sum/ofDocent, sum%ofDocent
	t.Logf("docent: %d answered, %d unknown, %d in the sum; Curator: %d answered, %d unknown or failed, %d in the sum",
		n.answered[0].Load(), n.unknown[0].Load(), ours, n.answered[1].Load(), n.unknown[1].Load(), theirs)
	require.GreaterOrEqual(t, ours, n.answered[0].Load())
	require.LessOrEqual(t, ours, n.answered[0].Load()+n.unknown[0].Load())
	require.LessOrEqual(t, n.unknown[0].Load(), int64(3), "only killed processes leave additions unanswered")
	require.GreaterOrEqual(t, n.answered[0].Load(), n.adds)
}

// numberTest counts the additions of docent, and of Curator.
type numberTest struct {
	*fleet
	t                 testing.TB
	path              string
	adds              int64 // of each language
	answered, unknown [2]atomic.Int64
}

// work adds until there are enough additions of the language, or the process is killed.
func (n *numberTest) work(p *peer) {
	a, delta, which := p.actor(n.t), int64(ofDocent), 0
	if p.language == "java" {
		delta, which = 1, 1
	}
	for n.answered[which].Load() < n.adds {
		n.unknown[which].Add(1)
		if _, err := fmt.Fprintln(p.stdin, a.name, "add", "atomic", n.path, delta); err != nil {
			return
		}
		select {
		case answer := <-a.answers:
			if strings.HasPrefix(answer, "number ") {
				n.unknown[which].Add(-1)
				n.answered[which].Add(1)
			} else if which == 0 {
				n.t.Errorf("%s: %s", a.name, answer)
			}
		case <-p.done:
			return
		}
	}
}

// awaitShare waits until both languages have made so many additions.
func (n *numberTest) awaitShare(adds int64) {
	for end := time.Now().Add(10 * patience); n.answered[0].Load() < adds || n.answered[1].Load() < adds; {
		require.True(n.t, time.Now().Before(end), "no progress: %d and %d additions", n.answered[0].Load(),
			n.answered[1].Load())
		time.Sleep(time.Millisecond)
	}
}
