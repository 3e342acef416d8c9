package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/discovery"
)

const (
	serviceName = "orders"
	ordersPath  = servicesPath + "/" + serviceName
	outPeriod   = 10 * time.Second // for which an instance is left out after a failure
)

// services has the instances of a service.
type services struct {
	mu    sync.Mutex
	ever  map[string]bool // each JSON that was to be registered
	until []*registration // registered until the end
}

// registration is an instance that a worker has registered.
type registration struct {
	*discovery.Registration
	last string // JSON of the last instance that was set
}

func text(i discovery.Instance) string { return string(must(i.MarshalJSON())) }

// register registers an instance for some time, or until the end.
func (w *worker) register(l *locks) error {
	types := []discovery.Type{discovery.Dynamic, discovery.DynamicSequential, discovery.Static}
	if w.closing {
		types = types[:2] // a Static instance may stay when its client is closed
	}
	i := discovery.Instance{
		Name: serviceName, ID: w.kept.name(w), Payload: must(json.Marshal("first")), Registered: time.Now(),
		Type: choose(w.random, types...),
	}
	i.Registered = i.Registered.UTC().Truncate(time.Millisecond)
	w.services.know(text(i))
	self, err := l.registry.Register(i)
	if err != nil {
		return err
	}
	if i.Type == discovery.Static {
		w.kept.addPersistent(ordersPath+"/"+i.ID, self)
	}
	w.useInstance(&registration{self, text(i)})
	return nil
}

func (s *services) know(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ever == nil {
		s.ever = map[string]bool{}
	}
	s.ever[text] = true
}

func (s *services) knows(i *discovery.Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ever[text(*i)]
}

func (w *worker) useInstance(r *registration) {
	for n := range w.random.IntN(3) {
		time.Sleep(upTo(w.random, time.Second))
		i := r.Instance()
		i.Payload, i.Disabled = must(json.Marshal(n)), w.random.IntN(2) == 0
		w.services.know(text(i))
		switch err := r.SetInstance(i); {
		case err == nil:
			r.last = text(i)
		case !oneOf(err, framework.ErrClosed):
			w.errorf("%s: set %v: %v", w.id, &i, err)
		}
	}
	time.Sleep(upTo(w.random, time.Second))
	if w.random.IntN(3) == 0 {
		w.services.mu.Lock()
		defer w.services.mu.Unlock()
		w.services.until = append(w.services.until, r)
		return
	}
	r.close(w.simulation)
}

func (r *registration) close(run *simulation) {
	if err := r.Close(); err != nil && !oneOf(err, discovery.ErrPending, framework.ErrClosed) {
		i := r.Instance()
		run.errorf("close %v: %v", &i, err)
	}
}

// pick picks an instance and reports that it fails. The next pick must leave it out.
func (w *worker) pick(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	provider := must(discovery.NewProvider(l.view.view, discovery.WithFailures(1, outPeriod)))
	failed := map[string]bool{}
	for begun := time.Now(); time.Since(begun) < outPeriod/2; time.Sleep(upTo(w.random, time.Second)) {
		i, err := provider.Pick(ctx)
		if err != nil {
			return ifNot(err, discovery.ErrNoInstance, discovery.ErrClosed)
		}
		// One with a number behind its ID has another node after a lost session.
		if known := w.services.knows(i); !known || i.Disabled || failed[i.ID] && i.Type != discovery.DynamicSequential {
			w.errorf("%s: picks %s (known: %v), and has reported failures of %v", w.id, text(*i), known, failed)
		}
		if w.random.IntN(2) == 0 {
			provider.Fail(i)
			failed[i.ID] = true
		}
	}
	return nil
}

// ifNot returns err unless it is one of the others.
func ifNot(err error, others ...error) error {
	if oneOf(err, others...) {
		return nil
	}
	return err
}

// readInstances reads the instances without a view.
func (w *worker) readInstances(l *locks) error {
	ctx, cancel := w.patience()
	defer cancel()
	all, err := l.registry.Instances(ctx, serviceName)
	for _, i := range all {
		if !w.services.knows(i) {
			w.errorf("%s: reads the instance %s, which was never registered", w.id, text(*i))
		}
	}
	return err
}

// view is the view of a client, and what its events have told.
type view struct {
	run  *simulation
	name string // of the client
	view *discovery.View

	mu   sync.Mutex
	told map[*discovery.Instance]bool
}

func newView(m *member, r *discovery.Registry) *view {
	v := &view{run: m.simulation, name: m.name, view: must(r.View(serviceName)), told: map[*discovery.Instance]bool{}}
	v.view.Listen(v.hear)
	return v
}

// hear applies an event.
func (v *view) hear(e discovery.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Old != nil && !v.told[e.Old] || e.New != nil && v.told[e.New] {
		v.run.errorf("%s: %v is reported, after %v", v.name, e, slices.Collect(maps.Keys(v.told)))
	}
	if delete(v.told, e.Old); e.New != nil {
		v.told[e.New] = true
	}
}

func (v *view) heard() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return texts(slices.Collect(maps.Keys(v.told)))
}

func texts(all []*discovery.Instance) string {
	var lines []string
	for _, i := range all {
		lines = append(lines, text(*i))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// check waits until the view and its events agree with the servers.
func (v *view) check() {
	want, unreadable := v.run.instances()
	agrees := func() bool {
		return texts(v.view.Instances()) == want && v.heard() == want &&
			slices.Equal(slices.Sorted(maps.Keys(v.view.Unreadable())), unreadable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := v.view.WaitReady(ctx); err != nil || !eventually(agrees) {
		v.run.errorf("%s: the instances are\n%s\nand %v\nthe view has\n%s\nand %v\nits events say\n%s\n(%v)", v.name,
			want, unreadable, texts(v.view.Instances()), v.view.Unreadable(), v.heard(), err)
	}
}

// instances returns the data of the nodes that are instances, and the paths of the others.
func (s *simulation) instances() (readable string, unreadable []string) {
	names, _ := s.srv.Children(ordersPath)
	var lines []string
	for _, name := range names {
		data := must(s.srv.Get(ordersPath + "/" + name))
		if json.Valid(data) {
			lines = append(lines, string(data))
		} else {
			unreadable = append(unreadable, ordersPath+"/"+name)
		}
	}
	slices.Sort(lines)
	slices.Sort(unreadable)
	return strings.Join(lines, "\n"), unreadable
}

// check checks that exactly the instances are there that are registered, with their last data, and
// unregisters them.
func (s *services) check(run *simulation) {
	var want []string
	for _, r := range s.until {
		if oneOf(r.Err(), framework.ErrClosed) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := r.WaitReady(ctx); err != nil {
			run.errorf("%s is not registered: %v", r.last, err)
		}
		cancel()
		want = append(want, r.last)
	}
	run.checkInstances(want)
	for _, r := range s.until {
		r.close(run)
	}
	run.checkInstances(nil)
}

func (s *simulation) checkInstances(want []string) {
	slices.Sort(want)
	if got, _ := s.instances(); got != strings.Join(want, "\n") {
		s.errorf("registered are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for _, m := range append(slices.Clone(s.members), s.calm) {
		m.current().view.check()
	}
}

// fillServices gives the service a node that is no instance.
func (s *simulation) fillServices() error {
	if !s.foreign {
		return nil
	}
	if err := s.srv.Create(ordersPath+"/x", []byte("10.0.0.3:8080")); err != nil {
		return fmt.Errorf("fill the service: %w", err)
	}
	return nil
}
