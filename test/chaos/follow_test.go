package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

// followers compares what workers follow and keep with the servers, by a plain connection.
type followers struct {
	t        *testing.T
	record   *recorder
	observer *zk.Conn
	writes   *writes
	marks    *marks
	mu       sync.Mutex // while workers are added
	workers  map[*siegeProcess]*followed
	latest   []turn     // that were told in this round
	unproved []sighting // which are checked once all writes are known
	events   int        // of caches
	told     int        // events of marks
	gaps     int        // that persistent watches told
}

// followed is what one worker has told.
type followed struct {
	caches map[string]*cacheHistory
	views  map[string]*viewHistory
	now    map[string]cacheReport // the last report of each cache
	last   turn                   // of the last report
}

// sighting is a version of a node that a cache has shown.
type sighting struct {
	path string
	version
}

func newFollowers(t *testing.T, record *recorder, observer *zk.Conn) *followers {
	return &followers{
		t: t, record: record, observer: observer, writes: newWrites(), marks: newMarks(),
		workers: map[*siegeProcess]*followed{},
	}
}

// add begins to compare what a worker follows. It is called again when the process is another one.
func (f *followers) add(w *siegeProcess) {
	of := &followed{
		caches: map[string]*cacheHistory{}, views: map[string]*viewHistory{}, now: map[string]cacheReport{},
	}
	for _, s := range scopes {
		of.caches[s.name] = newCacheHistory(s)
	}
	for path, mode := range viewed {
		of.views[path] = newViewHistory(path, mode)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers[w] = of
}

// ask has all workers tell what they follow, and checks the events.
func (f *followers) ask() error {
	for w := range f.workers {
		if err := w.order(orderShow); err != nil {
			return err
		}
	}
	var errs []error
	for w, of := range f.workers {
		for _, t := range w.shown(f.t) {
			f.latest = append(f.latest, t)
			if err := f.hear(of, t); err != nil {
				errs = append(errs, fmt.Errorf("worker %d: %w", w.number, err))
			}
		}
	}
	err := errors.Join(errs...)
	if err != nil {
		f.keepLatest()
	}
	return err
}

// keepLatest records what was told in this round.
func (f *followers) keepLatest() { f.record.keep(f.latest...) }

func (f *followers) hear(of *followed, t turn) (err error) {
	switch t.Kind {
	case kindCache:
		for _, c := range t.Cache.Changes {
			err = errors.Join(err, of.caches[t.Lock].add(c))
			if c.New != nil && !of.caches[t.Lock].scope.nodata {
				f.unproved = append(f.unproved, sighting{c.Path, *c.New})
			}
		}
		f.events += len(t.Cache.Changes)
		of.now[t.Lock] = *t.Cache
	case kindView:
		for _, e := range t.View.Events {
			err = errors.Join(err, of.views[t.Lock].add(f.marks, e))
			switch {
			case e.Type == zk.EventNotWatching:
				f.gaps++
			case e.Path != "":
				f.told++
			}
		}
	case kindShown:
		f.writes.add(t.Writes...)
		for _, wrong := range t.Group.Wrong {
			err = errors.Join(err, errors.New("group: "+wrong))
		}
		of.last = t
	case kindError:
		err = fmt.Errorf("an error that no fault explains: %+v", t)
	}
	return err
}

// countLists begins to count changes of lists of children anew.
func (f *followers) countLists() {
	for _, of := range f.workers {
		for _, v := range of.views {
			v.lists = 0
		}
	}
}

// missing returns which persistent watches have not told the last event of a mark. It is empty if all
// have.
func (f *followers) missing() string {
	var all []string
	for w, of := range f.workers {
		for path, v := range of.views {
			if w.watches() && !v.isComplete(f.marks) {
				all = append(all, fmt.Sprintf("worker %d, %s: next is %d of %d, %d lists", w.number, path, v.next,
					len(v.places), v.lists))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// prove checks the versions that caches have shown, at the end of a round. All writes have been told.
func (f *followers) prove() error {
	var errs []error
	for _, s := range f.unproved {
		if err := f.writes.check(s.path, s.version); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		f.keepLatest()
	}
	f.unproved, f.latest = nil, nil
	return errors.Join(errs...)
}

// differences compares what was told last with the servers. It is empty if they agree.
func (f *followers) differences() string {
	if err := testzk.Sync(f.observer); err != nil {
		return err.Error()
	}
	tree, kept := map[string]nodeOnServer{}, map[string]nodeOnServer{}
	err := errors.Join(readTree(f.observer, subtree, tree), readTree(f.observer, keptPath, kept),
		readTree(f.observer, groupPath, kept))
	if err != nil {
		return err.Error()
	}
	delete(kept, keptPath)
	delete(kept, groupPath)
	var all []string
	var owned []keptReport
	for w, of := range f.workers {
		owned = append(owned, of.last.Kept...)
		for name, h := range of.caches {
			all = append(all, ofCache(w, h, of.now[name], tree)...)
		}
		all = append(all, ofKept(w, of.last, kept)...)
		if diff := of.last.Group.differences(kept); diff != "" {
			all = append(all, fmt.Sprintf("worker %d: %s", w.number, diff))
		}
		for key, zxid := range of.last.Shots {
			if want := f.zxid(key); want != zxid {
				all = append(all, fmt.Sprintf("worker %d: one-shot watch for %s: want %#x, got %#x",
					w.number, key, want, zxid))
			}
		}
	}
	for node, found := range kept {
		if !slices.ContainsFunc(owned, func(k keptReport) bool { return isKept(node, k.Kind, k.Worker) }) {
			all = append(all, fmt.Sprintf("nothing keeps %s of session %#x", node, found.stat.EphemeralOwner))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func ofCache(
	w *siegeProcess, h *cacheHistory, now cacheReport, tree map[string]nodeOnServer,
) (all []string) {
	want := h.scope.content(tree)
	for what, content := range map[string]map[string]version{"holds": now.Content, "has shown": h.nodes} {
		if diff := differences(want, content); diff != "" {
			all = append(all, fmt.Sprintf("worker %d: the cache %q %s: %s", w.number, h.scope.name, what, diff))
		}
	}
	if !now.Ready || !h.ready {
		all = append(all, fmt.Sprintf("worker %d: the cache %q is stale", w.number, h.scope.name))
	}
	return all
}

// ofKept compares what a worker keeps.
func ofKept(w *siegeProcess, last turn, kept map[string]nodeOnServer) (all []string) {
	for _, k := range last.Kept {
		want := 0
		if !k.Closed {
			want = 1
		}
		var nodes []string
		right := k.Closed || k.There && k.Err == ""
		for node, found := range kept {
			if isKept(node, k.Kind, k.Worker) {
				owner := found.stat.EphemeralOwner
				nodes = append(nodes, fmt.Sprintf("%s of session %#x with %q", node, owner, found.data))
				right = right && owner == last.Session && string(found.data) == k.Data
			}
		}
		right = right && (!w.ordered || k.Closed == w.keepsNone && (k.Closed || k.Data == w.data))
		if !right || len(nodes) != want {
			all = append(all, fmt.Sprintf("worker %d of session %#x, told to keep %q, keeps %+v; there is %q",
				w.number, last.Session, w.data, k, nodes))
		}
	}
	return all
}

// differences compares what is known of the group with the nodes below it. It is empty if they agree.
func (r *groupReport) differences(nodes map[string]nodeOnServer) string {
	payloads, tokens := map[string]string{}, map[string]int64{}
	for node, found := range nodes {
		if id, of := strings.CutPrefix(node, groupPath+"/"); of {
			payloads[id], tokens[id] = string(found.data), found.stat.Czxid
		}
	}
	if maps.Equal(payloads, r.Members) && maps.Equal(tokens, r.Tokens) {
		return ""
	}
	return fmt.Sprintf("group: want %q %#x, got %q %#x", payloads, tokens, r.Members, r.Tokens)
}

// zxid returns the transaction that a one-shot watch has to show.
func (f *followers) zxid(key string) int64 {
	kind, path, _ := strings.Cut(key, " of ")
	there, stat, err := f.observer.Exists(path)
	switch {
	case err != nil || !there:
		return 0
	case kind == "data":
		return stat.Mzxid
	}
	return stat.Pzxid
}

func TestComparisonOfKeptNodesFindsWhatMustNotBe(t *testing.T) {
	const at = keptPath + "/fixed-w1"
	node := func(session int64, data string) nodeOnServer {
		return nodeOnServer{at, &zk.Stat{EphemeralOwner: session}, []byte(data)}
	}
	kept := keptReport{Kind: fixedNode, Worker: "w1", Data: "new", There: true}
	closed := keptReport{Kind: fixedNode, Worker: "w1", Closed: true}
	const numbered = keptPath + "/_c_guid-numbered-w1-0000000001"
	for name, example := range map[string]struct {
		report keptReport
		nodes  map[string]nodeOnServer
		right  bool
	}{
		"kept":             {kept, map[string]nodeOnServer{at: node(7, "new")}, true},
		"of another":       {kept, map[string]nodeOnServer{keptPath + "/fixed-w12": node(7, "new")}, false},
		"not there":        {kept, nil, false},
		"earlier data":     {kept, map[string]nodeOnServer{at: node(7, "old")}, false},
		"earlier session":  {kept, map[string]nodeOnServer{at: node(6, "new")}, false},
		"closed":           {closed, nil, true},
		"closed and there": {closed, map[string]nodeOnServer{at: node(7, "new")}, false},
		"not awaited": {
			keptReport{Kind: fixedNode, Worker: "w1", Data: "new"}, map[string]nodeOnServer{at: node(7, "new")}, false,
		},
		"twice": {
			keptReport{Kind: numberedNode, Worker: "w1", Data: "new", There: true},
			map[string]nodeOnServer{numbered: node(7, "new"), numbered[:len(numbered)-1] + "2": node(7, "new")}, false,
		},
		"numbered": {
			keptReport{Kind: numberedNode, Worker: "w1", Data: "new", There: true},
			map[string]nodeOnServer{numbered: node(7, "new")}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := turn{Session: 7, Report: &Report{Kept: []keptReport{example.report}}}
			require.Equal(t, example.right, len(ofKept(&siegeProcess{}, last, example.nodes)) == 0)
		})
	}
	ordered := &siegeProcess{ordered: true, data: "newer"}
	last := turn{Session: 7, Report: &Report{Kept: []keptReport{kept}}}
	nodes := map[string]nodeOnServer{at: node(7, "new")}
	require.NotEmpty(t, ofKept(ordered, last, nodes), "it was told to keep other data")
	ordered.data = "new"
	require.Empty(t, ofKept(ordered, last, nodes))
	ordered.keepsNone = true
	require.NotEmpty(t, ofKept(ordered, last, nodes), "it was told to close")
}
