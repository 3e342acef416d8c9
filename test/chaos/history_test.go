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

// diary is a folder for what a test has recorded. It is kept, and its path printed, if the test fails.
type diary struct {
	dir string

	mu   sync.Mutex
	file *os.File
}

func newDiary(t *testing.T) *diary {
	t.Helper()
	dir, err := os.MkdirTemp("", "docent-siege-")
	require.NoError(t, err)
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	d := &diary{dir: dir, file: file}
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

// entry is a line of a diary.
type diaryEntry struct {
	At    int64  `json:",omitempty"`
	Event string `json:",omitempty"`
	Turn  *turn  `json:",omitempty"`
}

func (d *diary) write(entry diaryEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = json.NewEncoder(d.file).Encode(entry) // a test's verdict does not depend on it
}

func (d *diary) note(format string, args ...any) {
	d.write(diaryEntry{At: now(), Event: fmt.Sprintf(format, args...)})
}

func (d *diary) keep(turns ...turn) {
	for _, t := range turns {
		d.write(diaryEntry{Turn: &t})
	}
}

// ledger is the history of one lock, checked as it grows. What is added must have begun after all that was checked before has ended.
type ledger struct {
	any, exclusive int64 // the largest tokens of all turns, and of those that exclude all others
	wrote          int64 // the last accepted write, and its token
	token          int64
}

// add checks that no more holds were valid at a time than may be, that tokens grow, that what holders wrote under their tokens did not go
// back, and that no node was deleted by another than its owner.
func (l *ledger) add(turns []turn) error {
	for _, t := range turns {
		if deleted := recipes.ErrNodeDeleted.Error(); strings.Contains(t.Lost, deleted) || strings.Contains(t.Release, deleted) {
			return fmt.Errorf("a node was deleted that had an owner: %+v", t)
		}
	}
	valid := slices.DeleteFunc(slices.Clone(turns), func(t turn) bool { return t.To < t.From }) // the others were over when they were first asked
	slices.SortFunc(valid, func(a, b turn) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	if err := l.overlap(valid); err != nil {
		return err
	}
	if err := l.order(valid); err != nil {
		return err
	}
	return l.writes(valid)
}

// overlap looks at each moment at which a turn begins. A turn ends before the next begins where both are at the same moment.
func (l *ledger) overlap(valid []turn) error {
	var present []turn
	for _, next := range valid {
		present = slices.DeleteFunc(present, func(t turn) bool { return t.To <= next.From })
		for _, other := range present {
			if exclusive(next) || exclusive(other) {
				return fmt.Errorf("two valid holds at a time, for %d ns at least: %+v and %+v", min(other.To, next.To)-next.From, other, next)
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

func (l *ledger) order(valid []turn) error {
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

func (l *ledger) writes(valid []turn) error {
	written := slices.DeleteFunc(slices.Clone(valid), func(t turn) bool { return t.Wrote == 0 })
	slices.SortFunc(written, func(a, b turn) int { return cmp.Compare(a.Wrote, b.Wrote) })
	for _, t := range written {
		if t.Token < l.token || t.Wrote <= l.wrote {
			return fmt.Errorf("a write under token %d in transaction %#x was accepted after one under %d in %#x: %+v", t.Token, t.Wrote, l.token, l.wrote, t)
		}
		l.token, l.wrote = t.Token, t.Wrote
	}
	return nil
}

func TestLedgerFindsWhatMustNotBe(t *testing.T) {
	const x, r, w, p = kindMutex, kindRead, kindWrite, kindPermit
	for name, example := range map[string]struct {
		turns []turn
		want  string // empty: nothing is wrong
	}{
		"in turn":            {[]turn{{Kind: x, Token: 1, From: 1, To: 5}, {Kind: x, Token: 2, From: 5, To: 9}}, ""},
		"any order":          {[]turn{{Kind: x, Token: 2, From: 5, To: 9}, {Kind: x, Token: 1, From: 1, To: 5}}, ""},
		"overlap":            {[]turn{{Kind: x, Token: 1, From: 1, To: 5}, {Kind: x, Token: 2, From: 4, To: 9}}, "two valid holds"},
		"inside":             {[]turn{{Kind: x, Token: 1, From: 1, To: 9}, {Kind: x, Token: 2, From: 4, To: 5}}, "two valid holds"},
		"not the next":       {[]turn{{Kind: r, Token: 1, From: 1, To: 9}, {Kind: r, Token: 2, From: 2, To: 3}, {Kind: w, Token: 3, From: 5, To: 6}}, "two valid holds"},
		"over at once":       {[]turn{{Kind: x, Token: 1, From: 1, To: 5}, {Kind: x, Token: 2, From: 4}}, ""},
		"readers":            {[]turn{{Kind: r, Token: 2, From: 1, To: 9}, {Kind: r, Token: 1, From: 4, To: 5}}, ""},
		"reader beside":      {[]turn{{Kind: w, Token: 1, From: 1, To: 9}, {Kind: r, Token: 2, From: 4, To: 5}}, "two valid holds"},
		"reader token":       {[]turn{{Kind: w, Token: 3, From: 1, To: 2}, {Kind: r, Token: 2, From: 4, To: 5}}, "not larger"},
		"writer token":       {[]turn{{Kind: r, Token: 3, From: 1, To: 2}, {Kind: w, Token: 3, From: 4, To: 5}}, "not larger"},
		"permits":            {[]turn{{Kind: p, Token: 1, From: 1, To: 9}, {Kind: p, Token: 2, From: 2, To: 9}, {Kind: p, Token: 3, From: 9, To: 10}}, ""},
		"one permit more":    {[]turn{{Kind: p, Token: 1, From: 1, To: 9}, {Kind: p, Token: 2, From: 2, To: 9}, {Kind: p, Token: 3, From: 8, To: 10}}, "3 valid permits"},
		"repeated token":     {[]turn{{Kind: x, Token: 1, From: 1, To: 2}, {Kind: x, Token: 1, From: 3, To: 4}}, "not larger"},
		"write goes back":    {[]turn{{Kind: x, Token: 1, From: 1, To: 2, Wrote: 8}, {Kind: x, Token: 2, From: 3, To: 4, Wrote: 7}}, "was accepted after"},
		"node deleted":       {[]turn{{Kind: x, Token: 1, From: 1, To: 2, Lost: "mutex: " + recipes.ErrNodeDeleted.Error()}}, "had an owner"},
		"gone at its return": {[]turn{{Kind: x, Token: 1, From: 1, To: 2, Release: recipes.ErrNodeDeleted.Error()}}, "had an owner"},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(ledger).add(example.turns)
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	var l ledger
	require.NoError(t, l.add([]turn{{Kind: x, Token: 5, From: 1, To: 2}}))
	require.ErrorContains(t, l.add([]turn{{Kind: x, Token: 4, From: 3, To: 4}}), "not larger", "what was checked before counts")
}
