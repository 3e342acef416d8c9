package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/retry"
)

// Paths of the recipes. limitPath and dataPath are data.
const (
	plainPath     = "/plain"
	handoffPath   = "/handoff"
	thirdPath     = "/third"
	nestedPath    = "/nested"
	rwPath        = "/rw"
	sharedPath    = "/shared"
	slotsPath     = "/slots"
	fixedPath     = "/fixed"
	singlePath    = "/single"
	electionPath  = "/election"
	latchPath     = "/latch"
	stripesPath   = "/stripes"
	shopPath      = "/shop" // of the mutex of the condition
	waitsPath     = "/waits"
	counterPath   = "/counter"
	valuePath     = "/value"
	treePath      = "/tree"
	keptPath      = "/kept"
	groupPath     = "/group"
	gatePath      = "/gate/closed"
	countDownPath = "/countdown"
	doublePath    = "/double"
	cyclicPath    = "/cyclic"
	fencedPath    = "/fenced"
	sequencePath  = "/sequence"
	servicesPath  = "/services"

	limitPath  = "/limit"
	dataPath   = "/data"
	fixedLimit = 3
	stripes    = 3
)

// multiPaths has the paths of the mutexes that multi-locks combine.
var multiPaths = []string{plainPath, handoffPath, thirdPath}

// locks has what one client has of the recipes.
type locks struct {
	client               *framework.Client
	plain, handoff, shop *mutex.Mutex
	fenced               *mutex.Mutex
	rw                   *rwlock.RWLock
	shared, slots, fixed *semaphore.Semaphore
	single               *semaphore.Mutex
	stripes              *striped.Striped
	waits                *condition.Condition
	counter              *counter.Atomic
	count                *counter.Count
	value                *counter.Value
	gate                 *barrier.Barrier
	countDown            *barrier.CountDown
	double               *barrier.Double
	cyclic               *barrier.Cyclic
	below                *counter.Atomic // what the sequence takes blocks of
	block                int64
	sequence             *counter.Sequence
	registry             *discovery.Registry
	tree                 *tree     // nil if no cache takes part
	audience             *audience // nil if no group takes part
	view                 *view     // nil if no service takes part
}

// member is a client with its locks. In some runs it is closed and replaced.
type member struct {
	*simulation
	name    string
	servers string
	random  *rand.Rand

	mu    sync.Mutex
	locks *locks
}

func (m *member) current() *locks {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locks
}

// open makes a client with random options.
func (m *member) open() {
	opts := []framework.Option{
		framework.WithDialer(m.srv.Client(m.name).DialContext),
		framework.WithSessionTimeout(sessionTimeout),
		framework.WithRandom(fork(m.random).Int64N),
		framework.WithMetrics(&m.metrics),
		framework.WithLossPolicy(framework.LossPolicy(max(0, m.random.IntN(4)-2))),
	}
	if m.random.IntN(2) == 0 {
		opts = append(opts, framework.WithRetry(retry.Forever(100*time.Millisecond)))
	}
	if m.auth {
		opts = append(opts, framework.WithAuth("digest", []byte("user:secret")))
	}
	c := must(framework.New(m.servers, opts...))
	limit := semaphore.WithSharedLimit(limitPath)
	l := &locks{
		client:    c,
		plain:     must(mutex.New(c, plainPath, m.names()...)),
		handoff:   must(mutex.New(c, handoffPath, m.handoff()...)),
		shop:      must(mutex.New(c, shopPath)),
		fenced:    must(mutex.New(c, fencedPath)),
		rw:        must(rwlock.New(c, rwPath)),
		shared:    must(semaphore.New(c, sharedPath, fixedLimit, limit)),
		slots:     must(semaphore.New(c, slotsPath, fixedLimit, limit, semaphore.WithSlots())),
		fixed:     must(semaphore.New(c, fixedPath, fixedLimit)),
		single:    must(semaphore.NewMutex(c, singlePath)),
		stripes:   must(striped.New(c, stripesPath, stripes)),
		counter:   must(counter.NewAtomic(c, counterPath)),
		count:     must(counter.NewCount(c, valuePath, 0)),
		value:     must(counter.NewValue(c, valuePath, number(0))),
		gate:      must(barrier.New(c, gatePath)),
		countDown: must(barrier.NewCountDown(c, countDownPath, m.counts.n)),
		double:    must(barrier.NewDouble(c, doublePath, m.plan.members)),
		cyclic:    must(barrier.NewCyclic(c, cyclicPath, m.parties.n)),
		below:     must(counter.NewAtomic(c, sequencePath)),
		block:     int64(1 + m.random.IntN(4)),
		registry:  must(discovery.New(c, servicesPath)),
	}
	l.sequence = must(counter.NewSequence(l.below, l.block))
	l.waits = must(condition.New(l.shop, waitsPath))
	if m.has("cache") {
		l.tree = newTree(m.simulation, c)
	}
	if m.has("group") {
		l.audience = newAudience(m, c)
	}
	if m.has("discovery") {
		l.view = newView(m, l.registry)
	}
	m.t.Cleanup(l.close)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.locks = l
}

func (m *member) names() (opts []mutex.Option) {
	if m.random.IntN(3) == 0 {
		opts = append(opts, mutex.WithKazooNames())
	}
	return opts
}

func (m *member) handoff() []mutex.Option {
	choice := m.random.IntN(3)
	if choice == 0 {
		return nil
	}
	limits := mutex.Handoff{Streak: 1 + m.random.IntN(5), Span: upTo(m.random, sessionTimeout)}
	if choice > 1 {
		limits.Idle = upTo(m.random, sessionTimeout)
	}
	return []mutex.Option{mutex.WithLocalHandoff(limits)}
}

func (l *locks) close() {
	if l.tree != nil {
		l.tree.cache.Close()
	}
	if l.audience != nil {
		l.audience.close()
	}
	if l.view != nil {
		l.view.view.Close()
	}
	_ = l.client.Close()
}

func (m *member) worker(id string) *worker {
	return &worker{member: m, id: fmt.Sprint(m.name, ".", id), random: fork(m.simulation.random)}
}
