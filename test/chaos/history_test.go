package chaos

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/recipes"
)

// What a turn was, in turn.Kind.
const (
	kindMutex      = "mutex"
	kindHandoff    = "hand-off"
	kindSticky     = "sticky"
	kindMulti      = "multi"
	kindWrite      = "write"
	kindRead       = "read"
	kindDowngraded = "downgraded"
	kindPermit     = "permit"
	kindTerm       = "term"
	kindLatch      = "latch"
	kindAdd        = "add"
)

// permits is how many there are of each semaphore.
const permits = 2

// recorder writes what a test records to a folder. If the test fails the folder stays, and its path is
// printed.
type recorder struct {
	dir string

	mu   sync.Mutex
	file *os.File
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	dir, err := os.MkdirTemp("", "docent-siege-")
	require.NoError(t, err)
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	d := &recorder{dir: dir, file: file}
	t.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		_ = d.file.Close()
		if t.Failed() {
			t.Logf("the history is in %s, with the logs of the workers beside it", d.file.Name())
			return
		}
		_ = os.RemoveAll(d.dir)
	})
	return d
}

// recordLine is a line of the history in the folder.
type recordLine struct {
	At    int64  `json:",omitempty"`
	Event string `json:",omitempty"`
	Turn  *turn  `json:",omitempty"`
}

func (d *recorder) write(entry recordLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = json.NewEncoder(d.file).Encode(entry) // a test's verdict does not depend on it
}

func (d *recorder) note(format string, args ...any) {
	d.write(recordLine{At: now(), Event: fmt.Sprintf(format, args...)})
}

func (d *recorder) keep(turns ...turn) {
	for _, t := range turns {
		d.write(recordLine{Turn: &t})
	}
}

// lockHistory is what the turns of one lock so far leave to the next ones. Turns that are added must
// have begun after all earlier ones had ended.
type lockHistory struct {
	lock    history.Lock
	permits history.Semaphore
	writes  history.Register
	limits  []history.Op    // of permits, in this round
	reads   map[int64]int64 // the tokens that were read in this round, by the transactions that wrote them
}

func newLockHistory() *lockHistory {
	return &lockHistory{permits: history.Semaphore{Permits: permits}, reads: map[int64]int64{}}
}

// read notes which token a transaction has written, and reports whether that is new.
func (l *lockHistory) read(token, zxid int64) bool {
	_, known := l.reads[zxid]
	if known || zxid <= l.writes.Zxid {
		return false
	}
	l.reads[zxid] = token
	return true
}

// add checks all turns of a round, and keeps what the next round needs.
func (l *lockHistory) add(turns []turn) error {
	err := l.check(turns)
	l.advance(turns)
	return err
}

// check checks that no more holds were valid at a time than may be, that tokens grow, that what holders
// wrote under their tokens did not go back, and that no node was deleted by another than its owner.
// Writes of unknown outcome count if they were read. A part of the turns of a round is right if all of
// them are.
func (l *lockHistory) check(turns []turn) error {
	var locks, writes []history.Op
	permits, unknown := slices.Clone(l.limits), maps.Clone(l.reads)
	deleted := recipes.ErrNodeDeleted.Error()
	for i, t := range turns {
		if strings.Contains(t.Lost, deleted) || strings.Contains(t.Release, deleted) {
			return fmt.Errorf("a node was deleted that had an owner: %+v", t)
		}
		switch {
		case t.To < t.From: // it had ended when it was asked the first time
			continue
		case t.Kind == kindPermit:
			permits = append(permits, t.ops(i)...)
		default:
			locks = append(locks, t.ops(i)...)
		}
		if t.Wrote != 0 {
			writes = append(writes, written(t.Token, t.Wrote))
		}
		if token, there := unknown[t.Wrote]; there && token != t.Token {
			return fmt.Errorf("token %d was read in place of that of %+v", token, t)
		}
		delete(unknown, t.Wrote)
	}
	for zxid, token := range unknown {
		writes = append(writes, written(token, zxid))
	}
	return errors.Join(
		history.Check(l.lock, locks), history.Check(l.permits, permits), history.Check(l.writes, writes))
}

// written returns the operation of a transaction that has written a token.
func written(token, zxid int64) history.Op {
	return history.Op{Call: zxid, Return: zxid, What: history.Write{Token: token, Zxid: zxid}}
}

// ops returns the operations of a turn with a number. Its end is the last moment at which it was
// valid. The transaction of a permit is within its acquire.
func (t turn) ops(number int) []history.Op {
	a := history.Acquire{
		Hold: number + 1, Name: fmt.Sprintf("%+v", t), Token: t.Token, By: int(t.By),
		Shared: t.isShared(), Passed: t.Kind == kindHandoff || t.Kind == kindSticky,
	}
	call := t.From
	if t.Kind == kindPermit {
		a.Permits, call = 1, cmp.Or(t.Called, t.From)
	}
	return []history.Op{
		{Call: call, Return: t.From, What: a},
		{Call: t.To, Return: t.To, What: history.End{Hold: a.Hold}},
	}
}

func (t turn) isShared() bool { return t.Kind == kindRead || t.Kind == kindDowngraded }

// advance notes the largest tokens, and the last limit.
func (l *lockHistory) advance(turns []turn) {
	for _, op := range l.limits {
		limit := op.What.(history.Limit)
		l.permits.Permits, l.permits.Zxid = limit.Permits, max(l.permits.Zxid, limit.Zxid)
	}
	l.limits = nil
	for _, t := range turns {
		switch {
		case t.To < t.From:
			continue
		case t.Kind == kindPermit:
			l.permits.Zxid = max(l.permits.Zxid, t.Token)
		case t.isShared():
			l.lock.Shared = max(l.lock.Shared, t.Token)
		default:
			l.lock.Exclusive = max(l.lock.Exclusive, t.Token)
		}
		if t.Wrote != 0 {
			l.read(t.Token, t.Wrote)
		}
	}
	for zxid, token := range l.reads {
		if zxid > l.writes.Zxid {
			l.writes = history.Register{Token: token, Zxid: zxid}
		}
	}
	clear(l.reads)
}

func TestLockHistoryFindsWhatMustNotBe(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawings
	const x, r, w, p, h, d = kindMutex, kindRead, kindWrite, kindPermit, kindHandoff, kindDowngraded
	pair := func(t turn) turn {
		t.By = 7
		return t
	}
	held := func(kind string, token, from, to int64) turn {
		return turn{Kind: kind, Token: token, From: from, To: to}
	}
	for name, example := range map[string]struct {
		turns []turn
		want  string // empty: nothing is wrong
	}{
		"in turn":               {[]turn{held(x, 1, 1, 5), held(x, 2, 5, 9)}, ""},
		"any order":             {[]turn{held(x, 2, 5, 9), held(x, 1, 1, 5)}, ""},
		"overlap":               {[]turn{held(x, 1, 1, 5), held(x, 2, 4, 9)}, "two valid holds"},
		"inside":                {[]turn{held(x, 1, 1, 9), held(x, 2, 4, 5)}, "two valid holds"},
		"not the next":          {[]turn{held(r, 1, 1, 9), held(r, 2, 2, 3), held(w, 3, 5, 6)}, "two valid holds"},
		"over at once":          {[]turn{held(x, 1, 1, 5), held(x, 2, 4, 0)}, ""},
		"readers":               {[]turn{held(r, 2, 1, 9), held(r, 1, 4, 5)}, ""},
		"reader beside":         {[]turn{held(w, 1, 1, 9), held(r, 2, 4, 5)}, "two valid holds"},
		"reader token":          {[]turn{held(w, 3, 1, 2), held(r, 2, 4, 5)}, "not larger"},
		"writer token":          {[]turn{held(r, 3, 1, 2), held(w, 3, 4, 5)}, "not larger"},
		"permits":               {[]turn{held(p, 1, 1, 9), held(p, 2, 2, 9), held(p, 3, 9, 10)}, ""},
		"one permit more":       {[]turn{held(p, 1, 1, 9), held(p, 2, 2, 9), held(p, 3, 8, 10)}, "3 valid permits"},
		"repeated token":        {[]turn{held(x, 1, 1, 2), held(x, 1, 3, 4)}, "not larger"},
		"passed on":             {[]turn{held(h, 1, 1, 2), held(h, 1, 3, 4)}, ""},
		"passed back":           {[]turn{held(h, 2, 1, 2), held(h, 1, 3, 4)}, "not larger"},
		"passed too soon":       {[]turn{held(h, 1, 1, 3), held(h, 1, 2, 4)}, "two valid holds"},
		"downgraded":            {[]turn{pair(held(w, 1, 1, 5)), pair(held(d, 1, 4, 9)), held(r, 2, 6, 7)}, ""},
		"downgraded at other's": {[]turn{held(w, 1, 1, 5), pair(held(d, 1, 4, 9))}, "two valid holds"},
		"writer beside downgraded": {
			[]turn{pair(held(w, 1, 1, 5)), pair(held(d, 1, 4, 9)), held(w, 2, 8, 9)}, "two valid holds",
		},
		"write goes back": {
			[]turn{{Kind: x, Token: 1, Wrote: 8}, {Kind: x, Token: 2, From: 1, Wrote: 7, To: 2}}, "accepted",
		},
		"node deleted":       {[]turn{{Kind: x, Lost: "mutex: " + recipes.ErrNodeDeleted.Error()}}, "had an owner"},
		"gone at its return": {[]turn{{Kind: x, Release: recipes.ErrNodeDeleted.Error()}}, "had an owner"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newLockHistory().add(example.turns)
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	l := newLockHistory()
	wrote := []turn{{Kind: x, Token: 1, From: 1, To: 2, Wrote: 7}, {Kind: x, Token: 3, From: 3, To: 4, Wrote: 9}}
	require.True(t, l.read(2, 8), "the outcome of this write is unknown")
	require.False(t, l.read(2, 8))
	require.True(t, l.read(3, 9))
	require.NoError(t, l.check(wrote))
	require.True(t, l.read(2, 10), "this one was applied late")
	require.ErrorContains(t, l.check(wrote), "accepted after token 3")
	delete(l.reads, 10)
	require.True(t, l.read(4, 7))
	require.ErrorContains(t, l.check(wrote), "token 4 was read in place of that of")
	delete(l.reads, 7)
	require.NoError(t, l.add(wrote))
	require.False(t, l.read(2, 8), "it was checked")
	require.True(t, l.read(2, 10))
	require.ErrorContains(t, l.check(nil), "accepted after token 3", "the writes of the last round count")

	l = newLockHistory()
	require.NoError(t, l.add([]turn{held(x, 5, 1, 2)}))
	require.ErrorContains(t, l.add([]turn{held(x, 4, 3, 4)}), "not larger", "what was checked before counts")
}
