package simulation_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/persistent"
)

// keeper is a kept node or a membership.
type keeper interface {
	SetData(data []byte) error
	WaitReady(ctx context.Context) error
	Err() error
	Close() error
}

type membership struct{ *group.Membership }

func (m membership) SetData(data []byte) error { return m.SetPayload(data) }

// kept has the nodes that are kept until the end.
type kept struct {
	mu    sync.Mutex
	count int
	nodes []keptNode
	// persistent has the nodes that do not belong to a session. While a client does not know whether it
	// has created such a node, it recognizes the node by its data.
	persistent map[string]interface{ Path() string }
}

// isOpen reports whether the owner of the node at a path may not know that the node is its own.
func (k *kept) isOpen(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, there := k.persistent[path]
	return there && n.Path() == ""
}

func (k *kept) addPersistent(path string, n interface{ Path() string }) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.persistent == nil {
		k.persistent = map[string]interface{ Path() string }{}
	}
	k.persistent[path] = n
}

type keptNode struct {
	keeper
	path, data string
	client     *framework.Client
}

func (k *kept) name(w *worker) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count++
	return fmt.Sprint(w.id, "-", k.count)
}

// keep keeps a node for some time, or until the end.
func (w *worker) keep(l *locks) error {
	at, data := keptPath+"/"+w.kept.name(w), "first"
	var opts []persistent.Option
	if !w.closing && w.random.IntN(3) == 0 { // such a node may stay when its client is closed
		opts = append(opts, persistent.WithPersistence())
	}
	n := must(persistent.New(l.client, at, []byte(data), opts...))
	if len(opts) > 0 {
		w.kept.addPersistent(at, n)
	}
	if err := n.Start(context.Background()); err != nil {
		return err
	}
	w.useNode(keptNode{n, at, data, l.client})
	return nil
}

// join joins the group for some time, or until the end.
func (w *worker) join(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	id, data := w.kept.name(w), "first"
	m, err := group.Join(ctx, l.client, groupPath, id, []byte(data))
	if err != nil {
		return err
	}
	w.useNode(keptNode{membership{m}, groupPath + "/" + id, data, l.client})
	return nil
}

func (w *worker) useNode(n keptNode) {
	for i := range w.random.IntN(3) {
		time.Sleep(upTo(w.random, time.Second))
		data := fmt.Sprint("data ", i)
		switch err := n.SetData([]byte(data)); {
		case err == nil:
			n.data = data
		case !oneOf(err, framework.ErrClosed):
			w.errorf("%s: set %s: %v", w.id, n.path, err)
		}
	}
	time.Sleep(upTo(w.random, time.Second))
	if w.random.IntN(3) == 0 {
		w.kept.mu.Lock()
		defer w.kept.mu.Unlock()
		w.kept.nodes = append(w.kept.nodes, n)
		return
	}
	n.close(w.simulation)
}

func (n keptNode) close(run *simulation) {
	if err := n.Close(); err != nil && !oneOf(err, persistent.ErrPending, group.ErrPending, framework.ErrClosed) {
		run.errorf("close %s: %v", n.path, err)
	}
}

// check checks that exactly the nodes are there that are kept, with their last data, and closes them.
func (k *kept) check(run *simulation) {
	var want, got []string
	for _, n := range k.nodes {
		if oneOf(n.Err(), framework.ErrClosed) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := n.WaitReady(ctx); err != nil {
			run.errorf("%s is not kept: %v", n.path, err)
		}
		cancel()
		want = append(want, n.path+" "+n.data)
	}
	got = run.nodesBelow(keptPath, groupPath)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		run.errorf("kept are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	run.checkAudiences()
	for _, n := range k.nodes {
		n.close(run)
	}
	run.checkAudiences()
	if got = run.nodesBelow(keptPath, groupPath); len(got) > 0 {
		run.errorf("after Close are left %v", got)
	}
}

func (s *simulation) checkAudiences() {
	if !s.has("group") {
		return
	}
	for _, m := range append(slices.Clone(s.members), s.calm) {
		m.current().audience.check()
	}
}

// nodesBelow returns the paths and the data of the children of nodes, sorted.
func (s *simulation) nodesBelow(dirs ...string) (all []string) {
	for _, dir := range dirs {
		names, _ := s.srv.Children(dir)
		for _, name := range names {
			data, _ := s.srv.Get(dir + "/" + name)
			all = append(all, dir+"/"+name+" "+string(data))
		}
	}
	slices.Sort(all)
	return all
}

// tree is the cache of a client, and what its events have told.
type tree struct {
	cache *cache.Cache

	mu   sync.Mutex
	told map[string]string
}

func newTree(run *simulation, c *framework.Client) *tree {
	t := &tree{told: map[string]string{}}
	t.cache = must(cache.New(c, treePath, cache.WithListener(func(e cache.Event) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if problem := t.hear(e); problem != "" {
			run.errorf("%v: %s", e, problem)
		}
	})))
	return t
}

// hear applies an event, and says why it is impossible.
func (t *tree) hear(e cache.Event) (problem string) {
	at := e.Path()
	_, there := t.told[at]
	switch e.Kind {
	case cache.Added:
		if there {
			problem = "it was there"
		}
		t.told[at] = version(e.New)
	case cache.Changed:
		if !there || t.told[at] != version(e.Old) {
			problem = "it was " + t.told[at]
		}
		t.told[at] = version(e.New)
	case cache.Removed:
		if !there {
			problem = "it was not there"
		}
		delete(t.told, at)
	}
	return problem
}

func version(n *cache.Node) string {
	return fmt.Sprint(n.Stat.Czxid, " ", n.Stat.Mzxid, " ", string(n.Data))
}

// changeTree makes a change below the node of the caches.
func (w *worker) changeTree(l *locks) error {
	node := treePath
	for range w.random.IntN(4) {
		node = path.Join(node, fmt.Sprint("n", w.random.IntN(2)))
	}
	ctx, cancel := context.WithTimeout(w.all, upTo(w.random, 3*time.Second))
	defer cancel()
	data := []byte(w.kept.name(w))
	switch w.random.IntN(5) {
	case 0, 1:
		_, _ = l.client.Create(ctx, node, data, framework.Parents())
	case 2, 3:
		_, _ = l.client.Set(ctx, node, data, -1)
	default:
		_ = l.client.Delete(ctx, node, -1)
	}
	return nil
}

// check compares the cache and its events with the servers.
func (t *tree) check(m *member) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := t.cache.WaitReady(ctx); err != nil {
		m.errorf("%s: the cache is not current: %v", m.name, err)
		return
	}
	want, got := map[string]string{}, map[string]string{}
	m.readTree(treePath, want)
	for at, n := range t.cache.All() {
		got[at] = version(n)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := fmt.Sprint(want); fmt.Sprint(got) != text || fmt.Sprint(t.told) != text {
		m.errorf("%s: the tree is\n%v\nthe cache has\n%v\nits events say\n%v", m.name, text, got, t.told)
	}
}

func (s *simulation) readTree(at string, all map[string]string) {
	if !s.srv.Exists(at) {
		return
	}
	stat, data := must(s.srv.Stat(at)), must(s.srv.Get(at))
	all[at] = fmt.Sprint(stat.Czxid, " ", stat.Mzxid, " ", string(data))
	for _, name := range must(s.srv.Children(at)) {
		s.readTree(path.Join(at, name), all)
	}
}
