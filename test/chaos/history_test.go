package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes"
)

// What a turn was, in turn.Kind.
const (
	kindMutex  = "mutex"
	kindWrite  = "write"
	kindRead   = "read"
	kindPermit = "permit"
	kindTerm   = "term"
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

// lockHistory is the history of one lock, which is checked as it grows. Turns that are added must have
// begun after all earlier ones had ended.
type lockHistory struct {
	any, exclusive int64 // the largest tokens of all turns, and of those that exclude all others
	wrote          int64 // the last accepted write, and its token
	token          int64
}

// add checks that no more holds were valid at a time than may be, that tokens grow, that what holders
// wrote under their tokens did not go back, and that no node was deleted by another than its owner.
func (l *lockHistory) add(turns []turn) error {
	deleted := recipes.ErrNodeDeleted.Error()
	for _, t := range turns {
		if strings.Contains(t.Lost, deleted) || strings.Contains(t.Release, deleted) {
			return fmt.Errorf("a node was deleted that had an owner: %+v", t)
		}
	}
	overAtOnce := func(t turn) bool { return t.To < t.From }
	valid := slices.DeleteFunc(slices.Clone(turns), overAtOnce)
	slices.SortFunc(valid, func(a, b turn) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	if err := l.overlap(valid); err != nil {
		return err
	}
	if err := l.order(valid); err != nil {
		return err
	}
	return l.writes(valid)
}

// overlap looks at each moment at which a turn begins. A turn ends before the next begins where both
// are at the same moment.
func (l *lockHistory) overlap(valid []turn) error {
	var present []turn
	for _, next := range valid {
		present = slices.DeleteFunc(present, func(t turn) bool { return t.To <= next.From })
		for _, other := range present {
			if exclusive(next) || exclusive(other) {
				both := time.Duration(min(other.To, next.To) - next.From)
				return fmt.Errorf("two valid holds at a time, for %v: %+v and %+v", both, other, next)
			}
		}
		present = append(present, next)
		if next.Kind == kindPermit && len(present) > permits {
			return fmt.Errorf("%d valid permits at a time: %+v", len(present), present)
		}
	}
	return nil
}

func exclusive(t turn) bool { return t.Kind != kindRead && t.Kind != kindPermit }

func (l *lockHistory) order(valid []turn) error {
	for _, t := range valid {
		before := l.exclusive
		if exclusive(t) {
			before = l.any
		}
		if t.Kind != kindPermit && t.Token <= before {
			return fmt.Errorf("a token is not larger than %d, an earlier one: %+v", before, t)
		}
		if l.any = max(l.any, t.Token); exclusive(t) {
			l.exclusive = max(l.exclusive, t.Token)
		}
	}
	return nil
}

func (l *lockHistory) writes(valid []turn) error {
	written := slices.DeleteFunc(slices.Clone(valid), func(t turn) bool { return t.Wrote == 0 })
	slices.SortFunc(written, func(a, b turn) int { return cmp.Compare(a.Wrote, b.Wrote) })
	for _, t := range written {
		if t.Token < l.token || t.Wrote <= l.wrote {
			return fmt.Errorf("a write was accepted after one under token %d in transaction %#x: %+v",
				l.token, l.wrote, t)
		}
		l.token, l.wrote = t.Token, t.Wrote
	}
	return nil
}

func TestLockHistoryFindsWhatMustNotBe(t *testing.T) {
	const x, r, w, p = kindMutex, kindRead, kindWrite, kindPermit
	held := func(kind string, token, from, to int64) turn {
		return turn{Kind: kind, Token: token, From: from, To: to}
	}
	for name, example := range map[string]struct {
		turns []turn
		want  string // empty: nothing is wrong
	}{
		"in turn":         {[]turn{held(x, 1, 1, 5), held(x, 2, 5, 9)}, ""},
		"any order":       {[]turn{held(x, 2, 5, 9), held(x, 1, 1, 5)}, ""},
		"overlap":         {[]turn{held(x, 1, 1, 5), held(x, 2, 4, 9)}, "two valid holds"},
		"inside":          {[]turn{held(x, 1, 1, 9), held(x, 2, 4, 5)}, "two valid holds"},
		"not the next":    {[]turn{held(r, 1, 1, 9), held(r, 2, 2, 3), held(w, 3, 5, 6)}, "two valid holds"},
		"over at once":    {[]turn{held(x, 1, 1, 5), held(x, 2, 4, 0)}, ""},
		"readers":         {[]turn{held(r, 2, 1, 9), held(r, 1, 4, 5)}, ""},
		"reader beside":   {[]turn{held(w, 1, 1, 9), held(r, 2, 4, 5)}, "two valid holds"},
		"reader token":    {[]turn{held(w, 3, 1, 2), held(r, 2, 4, 5)}, "not larger"},
		"writer token":    {[]turn{held(r, 3, 1, 2), held(w, 3, 4, 5)}, "not larger"},
		"permits":         {[]turn{held(p, 1, 1, 9), held(p, 2, 2, 9), held(p, 3, 9, 10)}, ""},
		"one permit more": {[]turn{held(p, 1, 1, 9), held(p, 2, 2, 9), held(p, 3, 8, 10)}, "3 valid permits"},
		"repeated token":  {[]turn{held(x, 1, 1, 2), held(x, 1, 3, 4)}, "not larger"},
		"write goes back": {
			[]turn{{Kind: x, Token: 1, Wrote: 8}, {Kind: x, Token: 2, From: 1, Wrote: 7, To: 2}}, "accepted",
		},
		"node deleted":       {[]turn{{Kind: x, Lost: "mutex: " + recipes.ErrNodeDeleted.Error()}}, "had an owner"},
		"gone at its return": {[]turn{{Kind: x, Release: recipes.ErrNodeDeleted.Error()}}, "had an owner"},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(lockHistory).add(example.turns)
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	var l lockHistory
	require.NoError(t, l.add([]turn{held(x, 5, 1, 2)}))
	require.ErrorContains(t, l.add([]turn{held(x, 4, 3, 4)}), "not larger", "what was checked before counts")
}
