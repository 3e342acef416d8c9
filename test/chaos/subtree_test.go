package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
)

// The subtree that writers change and caches follow, and the part of it in which some data is gzip.
const (
	subtree = "/subtree"
	zipped  = subtree + "/c"
)

// The sizes of data. Few writes are large, because each cache reads each of them.
const (
	smallData = 200
	largeData = 300_000
)

// payload returns the data of a write: a line that no other write has, and size bytes more.
func payload(line string, size int, zip bool) []byte {
	data := append([]byte(line+"\n"), bytes.Repeat([]byte("x"), size)...)
	if !zip {
		return data
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // to memory
	_ = w.Close()
	return packed.Bytes()
}

// lineOf returns the line of data that payload has returned, packed or not. It is empty without
// data, as in a parent that was created with its child.
func lineOf(data []byte) string {
	if isZipped(data) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return "damaged: " + err.Error()
		}
		if data, err = io.ReadAll(r); err != nil {
			return "damaged: " + err.Error()
		}
	}
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	var size int
	_, err := fmt.Sscanf(string(line[bytes.LastIndexByte(line, ' ')+1:]), "%d", &size)
	if len(data) > 0 && (err != nil || len(rest) != size || len(bytes.Trim(rest, "x")) > 0) {
		return fmt.Sprintf("damaged: %d bytes after %q", len(rest), line)
	}
	return string(line)
}

func isZipped(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// version is a node at one time.
type version struct {
	Czxid int64
	Mzxid int64  `json:",omitempty"` // not of a cache without data
	Line  string `json:",omitempty"`
	Err   bool   `json:",omitempty"` // the cache could not decompress the data
}

// scope is what one cache holds.
type scope struct {
	name    string
	root    string
	depth   int    // negative: all levels
	leave   string // the name of nodes that are left out
	nodata  bool
	inflate bool
}

var scopes = []scope{
	{name: "tree", root: subtree, depth: -1},
	{name: "children", root: subtree, depth: 1},
	{name: "node", root: subtree + "/a", depth: 0},
	{name: "names", root: subtree, depth: -1, nodata: true},
	{name: "filtered", root: subtree + "/b", depth: 2, leave: "b"},
	{name: "inflated", root: zipped, depth: -1, inflate: true},
}

func (s scope) options() (opts []cache.Option) {
	if s.depth >= 0 {
		opts = append(opts, cache.WithDepth(s.depth))
	}
	if s.leave != "" {
		opts = append(opts, cache.WithFilter(func(node string) bool { return path.Base(node) != s.leave }))
	}
	if s.nodata {
		opts = append(opts, cache.WithoutData())
	}
	if s.inflate {
		opts = append(opts, cache.WithCompression())
	}
	return opts
}

// covers reports whether the cache holds a node.
func (s scope) covers(node string) bool {
	below, inside := strings.CutPrefix(node, s.root)
	if !inside || below != "" && below[0] != '/' || s.depth >= 0 && strings.Count(below, "/") > s.depth {
		return false
	}
	return s.leave == "" || !slices.Contains(strings.Split(below, "/"), s.leave)
}

// version returns what a cache of this scope has to hold of a node with this data on the servers.
func (s scope) version(stat *zk.Stat, data []byte) version {
	if s.nodata {
		return version{Czxid: stat.Czxid}
	}
	return version{
		Czxid: stat.Czxid, Mzxid: stat.Mzxid, Line: lineOf(data), Err: s.inflate && len(data) > 0 && !isZipped(data),
	}
}

// held returns the version of a node in a cache of this scope.
func (s scope) held(n *cache.Node) version {
	if s.nodata {
		return version{Czxid: n.Stat.Czxid}
	}
	return version{Czxid: n.Stat.Czxid, Mzxid: n.Stat.Mzxid, Line: lineOf(n.Data), Err: n.Err != nil}
}

// content returns what a cache of this scope has to hold of a tree.
func (s scope) content(tree map[string]nodeOnServer) map[string]version {
	all := map[string]version{}
	for node, found := range tree {
		if s.covers(node) {
			all[node] = s.version(found.stat, found.data)
		}
	}
	return all
}

// nodeOnServer is a node as a plain connection has read it.
type nodeOnServer struct {
	path string
	stat *zk.Stat
	data []byte
}

// readTree reads a node and all nodes below it.
func readTree(conn *zk.Conn, node string, into map[string]nodeOnServer) error {
	data, stat, err := conn.Get(node)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	names, _, err := conn.Children(node)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	into[node] = nodeOnServer{node, stat, data}
	for _, name := range names {
		if err := readTree(conn, node+"/"+name, into); err != nil {
			return err
		}
	}
	return nil
}

// change is an event of a cache.
type change struct {
	At       int64 `json:",omitempty"`
	Kind     cache.Kind
	Path     string   `json:",omitempty"`
	Old, New *version `json:",omitempty"`
}

// cacheHistory is what the events of one cache have shown.
type cacheHistory struct {
	scope  scope
	nodes  map[string]version
	newest map[string]int64 // the latest transaction at a path that was shown
	ready  bool
}

func newCacheHistory(s scope) *cacheHistory {
	return &cacheHistory{scope: s, nodes: map[string]version{}, newest: map[string]int64{}}
}

// add checks that an event follows those before: that it has the node as it was shown last, that the
// new version of a node is a later one, and that no node is without its parent.
func (h *cacheHistory) add(c change) error {
	if err := h.check(c); err != nil {
		return fmt.Errorf("cache %q: event %q of %s, old %+v, new %+v: %w",
			h.scope.name, c.Kind, c.Path, c.Old, c.New, err)
	}
	switch c.Kind {
	case cache.Ready, cache.Stale:
		h.ready = c.Kind == cache.Ready
	case cache.Removed:
		delete(h.nodes, c.Path)
	default:
		h.nodes[c.Path] = *c.New
		h.newest[c.Path] = max(c.New.Czxid, c.New.Mzxid)
	}
	return nil
}

func (h *cacheHistory) check(c change) error {
	shown, there := h.nodes[c.Path]
	switch c.Kind {
	case cache.Ready, cache.Stale:
		return errorUnless(h.ready == (c.Kind == cache.Stale), "a second one")
	case cache.Added:
		_, parent := h.nodes[path.Dir(c.Path)]
		return errors.Join(
			errorUnless(h.scope.covers(c.Path), "the node is not of this cache"),
			errorUnless(!there, "the node was there: %+v", shown),
			errorUnless(parent || c.Path == h.scope.root, "its parent is not there"),
			errorUnless(c.New.Czxid > h.newest[c.Path], "transaction %#x was shown before", h.newest[c.Path]))
	}
	if !there || *c.Old != shown {
		return fmt.Errorf("shown before: %+v, %t", shown, there)
	}
	if c.Kind == cache.Removed {
		for below := range h.nodes {
			if path.Dir(below) == c.Path {
				return fmt.Errorf("%s is there", below)
			}
		}
		return nil
	}
	return errors.Join(
		errorUnless(!h.scope.nodata, "a cache without data"),
		errorUnless(c.New.Czxid == shown.Czxid, "another node without a deletion"),
		errorUnless(c.New.Mzxid > shown.Mzxid, "not a later version"))
}

// errorUnless returns an error with the text unless ok.
func errorUnless(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// attempt is an attempt to write a node.
type attempt struct {
	Path    string
	Line    string            // of its data
	Outcome framework.Outcome // as the client tells it
	Zxid    int64             `json:",omitempty"` // of the transaction; 0: not known
}

// writes are all attempts to write nodes, and all versions of nodes that were seen.
type writes struct {
	attempts map[string]attempt // by line
	seen     map[string]string
}

func newWrites() *writes { return &writes{map[string]attempt{}, map[string]string{}} }

func (w *writes) add(made ...attempt) {
	for _, m := range made {
		w.attempts[m.Line] = m
	}
}

// check checks that a version of a node that was seen was written so, and that no other has its
// transaction.
func (w *writes) check(node string, v version) error {
	key := fmt.Sprintf("%s %#x", node, v.Mzxid)
	if line, there := w.seen[key]; there && line != v.Line {
		return fmt.Errorf("%s has the data %q, elsewhere %q", key, v.Line, line)
	}
	w.seen[key] = v.Line
	if v.Line == "" { // a parent that was created with its child
		return nil
	}
	made, there := w.attempts[v.Line]
	switch {
	case !there:
		return fmt.Errorf("%s has the data %q, which was never written", key, v.Line)
	case made.Path != node, made.Outcome == framework.NotApplied, made.Zxid != 0 && made.Zxid != v.Mzxid:
		return fmt.Errorf("%s has the data %q; that write: %v, %+v", key, v.Line, made.Outcome, made)
	}
	return nil
}

// writer changes the subtree at random.
type writer struct {
	client *framework.Client
	name   string
	random *rand.Rand    // of run
	pause  time.Duration // the longest between two changes
	below  bool          // the upper nodes of the subtree are not deleted
	wrong  func(error)   // is called with an error that no fault explains
	begins func(attempt) // is called before each write, or nil

	mu    sync.Mutex
	count int
	made  []attempt
	first error // that was kept
}

// keepWrong keeps the first error that no fault explains, for unexplained.
func (w *writer) keepWrong(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.first = fmt.Errorf("an error that no fault explains: %w", err)
	}
}

// unexplained returns an error that keepWrong has kept.
func (w *writer) unexplained() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// run makes changes until over is closed.
func (w *writer) run(ctx context.Context, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(below(w.random, w.pause)): // the workload
			w.change(ctx)
		}
	}
}

// change makes one change. Some of them are given up while they wait.
func (w *writer) change(ctx context.Context) {
	if w.random.IntN(4) == 0 {
		limited, cancel := context.WithTimeout(ctx, below(w.random, 300*time.Millisecond))
		defer cancel()
		ctx = limited
	}
	node, deep := subtree, w.random.IntN(4)
	for range deep {
		node += "/" + string(rune('a'+w.random.IntN(3)))
	}
	kinds := 12
	if deep < 2 && (w.below || w.random.IntN(8) > 0) {
		kinds = 10 // otherwise the whole subtree would be another one after each outage
	}
	var err error
	switch w.random.IntN(kinds) {
	case 0, 1, 2, 3:
		var opts []framework.CreateOption
		if w.random.IntN(4) > 0 {
			opts = append(opts, framework.Parents())
		}
		err = w.write(node, func(data []byte) (int64, error) {
			made, err := w.client.CreateResult(ctx, node, data, opts...)
			return made.Czxid, err
		})
	case 4, 5, 6, 7:
		err = w.write(node, func(data []byte) (int64, error) {
			stat, err := w.client.Set(ctx, node, data, -1)
			if err != nil {
				return 0, err
			}
			return stat.Mzxid, nil
		})
	case 8, 9:
		err = w.client.Delete(ctx, node, -1)
	case 10:
		err = w.client.DeleteRecursive(ctx, node)
	default: // another node in the same place
		err = w.write(node, func(data []byte) (int64, error) {
			made, err := w.client.Multi(ctx, framework.DeleteOp(node, -1), framework.CreateOp(node, data))
			if err != nil {
				return 0, err
			}
			return made[1].Czxid, nil
		})
	}
	if !isExpected(err, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty) {
		w.wrong(fmt.Errorf("write %s: %w", node, err))
	}
}

// write makes a write, and notes what became of it.
func (w *writer) write(node string, do func(data []byte) (zxid int64, err error)) error {
	size := w.random.IntN(smallData)
	if w.random.IntN(30) == 0 {
		size = w.random.IntN(largeData)
	}
	w.mu.Lock()
	w.count++
	line := fmt.Sprintf("%s %s %d %d", node, w.name, w.count, size)
	w.mu.Unlock()
	if w.begins != nil {
		w.begins(attempt{Path: node, Line: line})
	}
	inZipped := strings.HasPrefix(node+"/", zipped+"/")
	zxid, err := do(payload(line, size, inZipped && w.random.IntN(4) > 0))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made = append(w.made, attempt{node, line, framework.OutcomeOf(err), zxid})
	return err
}

// written returns how many writes were begun.
func (w *writer) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// take returns the attempts since the last time.
func (w *writer) take() []attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	made := w.made
	w.made = nil
	return made
}

func TestHistoryOfACacheFindsWhatMustNotBe(t *testing.T) {
	const a, b = subtree, subtree + "/b"
	node := func(czxid, mzxid int64) *version { return &version{Czxid: czxid, Mzxid: mzxid} }
	created := func(at string, n *version) change { return change{Kind: cache.Added, Path: at, New: n} }
	changed := func(at string, old, n *version) change {
		return change{Kind: cache.Changed, Path: at, Old: old, New: n}
	}
	deleted := func(at string, old *version) change { return change{Kind: cache.Removed, Path: at, Old: old} }
	ready, stale := change{Kind: cache.Ready}, change{Kind: cache.Stale}
	for name, example := range map[string]struct {
		changes []change
		want    string // empty: nothing is wrong
	}{
		"a history": {[]change{
			created(a, node(1, 1)), created(b, node(2, 2)), ready, changed(b, node(2, 2), node(2, 4)), stale,
			deleted(b, node(2, 4)), created(b, node(6, 7)), ready, deleted(b, node(6, 7)), deleted(a, node(1, 1)),
		}, ""},
		"twice":         {[]change{created(a, node(1, 1)), created(a, node(2, 2))}, "was there"},
		"orphan":        {[]change{created(b, node(1, 1))}, "parent"},
		"outside":       {[]change{created("/other", node(1, 1))}, "not of this cache"},
		"unknown":       {[]change{changed(a, node(1, 1), node(1, 2))}, "shown before"},
		"other old":     {[]change{created(a, node(1, 1)), changed(a, node(1, 2), node(1, 3))}, "shown before"},
		"back":          {[]change{created(a, node(1, 3)), changed(a, node(1, 3), node(1, 2))}, "not a later"},
		"again":         {[]change{created(a, node(1, 3)), changed(a, node(1, 3), node(1, 3))}, "not a later"},
		"replaced":      {[]change{created(a, node(1, 1)), changed(a, node(1, 1), node(2, 2))}, "another node"},
		"deleted twice": {[]change{created(a, node(1, 1)), deleted(a, node(1, 1)), deleted(a, node(1, 1))}, "shown"},
		"created anew": {
			[]change{created(a, node(1, 3)), deleted(a, node(1, 3)), created(a, node(2, 2))}, "before",
		},
		"parent first": {
			[]change{created(a, node(1, 1)), created(b, node(2, 2)), deleted(a, node(1, 1))}, "is there",
		},
		"ready when ready": {[]change{ready, ready}, "second"},
		"stale at first":   {[]change{stale}, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newCacheHistory(scopes[0])
			var err error
			for _, c := range example.changes {
				err = errors.Join(err, h.add(c))
			}
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
}

func TestWritesFindAVersionThatWasNotWritten(t *testing.T) {
	attempts := []attempt{
		{subtree, "applied", framework.Applied, 7}, {subtree, "unknown", framework.Unknown, 0},
		{subtree, "refused", framework.NotApplied, 0},
	}
	for name, example := range map[string]struct {
		node string
		v    version
		want string
	}{
		"applied":           {subtree, version{Mzxid: 7, Line: "applied"}, ""},
		"unknown":           {subtree, version{Mzxid: 8, Line: "unknown"}, ""},
		"parent":            {subtree, version{Mzxid: 9}, ""},
		"refused":           {subtree, version{Mzxid: 8, Line: "refused"}, "not applied"},
		"never written":     {subtree, version{Mzxid: 8, Line: "other"}, "never written"},
		"other transaction": {subtree, version{Mzxid: 8, Line: "applied"}, "that write"},
		"elsewhere":         {subtree + "/a", version{Mzxid: 7, Line: "applied"}, "that write"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrites()
			w.add(attempts...)
			err := w.check(example.node, example.v)
			if example.want == "" {
				require.NoError(t, err)
				err = w.check(example.node, version{Mzxid: example.v.Mzxid, Line: "another"})
				example.want = "elsewhere"
			}
			require.ErrorContains(t, err, example.want)
		})
	}
}

func TestLineOfFindsDamagedData(t *testing.T) {
	for _, zip := range []bool{false, true} {
		data := payload("/a w 1 100", 100, zip)
		require.Equal(t, "/a w 1 100", lineOf(data))
		require.Contains(t, lineOf(data[:len(data)-1]), "damaged")
	}
	require.Empty(t, lineOf(nil))
	require.Contains(t, lineOf([]byte("other")), "damaged")
}

// differences returns what is in one of two contents of a cache, or in both and not equal, as text.
func differences(want, got map[string]version) string {
	var lines []string
	for _, node := range slices.Sorted(maps.Keys(want)) {
		if v, there := got[node]; !there || v != want[node] {
			lines = append(lines, fmt.Sprintf("%s: want %+v, got %+v", node, want[node], v))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[node]; !there {
			lines = append(lines, fmt.Sprintf("%s: want none, got %+v", node, got[node]))
		}
	}
	return strings.Join(lines, "; ")
}
