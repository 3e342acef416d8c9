package acceptance_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/recipes/striped"
)

const (
	p07Lock = "/p07/lock"
	p07Held = "/p07/held" // the lock of the hold, if there is a session
)

// p07Subject has the objects whose methods are called. Without a connection there is no session and
// no hold.
type p07Subject struct {
	client  *framework.Client
	session *framework.Session
	mutex   *mutex.Mutex // of a free lock
	held    *mutex.Mutex // of a held lock
	hold    *recipes.Hold
}

// p07Call is a call that may have to wait for servers.
type p07Call func(ctx context.Context, on *p07Subject) error

// p07Ops has the methods that clients and sessions have in common.
type p07Ops interface {
	Children(context.Context, string) ([]string, *zk.Stat, error)
	ChildrenW(context.Context, string) ([]string, *zk.Stat, *framework.Watch, error)
	CountAll(context.Context, string) (int, error)
	Create(context.Context, string, []byte, ...framework.CreateOption) (string, error)
	CreateContainers(context.Context, string) error
	CreateResult(context.Context, string, []byte, ...framework.CreateOption) (framework.Result, error)
	Delete(context.Context, string, int32) error
	DeleteGuaranteed(context.Context, ...string) error
	Ephemerals(context.Context, string) ([]string, error)
	DeleteRecursive(context.Context, string) error
	Exists(context.Context, string) (*zk.Stat, error)
	ExistsW(context.Context, string) (*zk.Stat, *framework.Watch, error)
	Get(context.Context, string) ([]byte, *zk.Stat, error)
	GetACL(context.Context, string) ([]zk.ACL, *zk.Stat, error)
	GetW(context.Context, string) ([]byte, *zk.Stat, *framework.Watch, error)
	Multi(context.Context, ...framework.Op) ([]framework.Result, error)
	MultiRead(context.Context, ...framework.ReadOp) ([]framework.ReadResult, error)
	Set(context.Context, string, []byte, int32) (*zk.Stat, error)
	SetACL(context.Context, string, []zk.ACL, int32) (*zk.Stat, error)
	Sync(context.Context, string) error
}

var p07OpCalls = map[string]func(context.Context, p07Ops) error{
	"Children": func(ctx context.Context, o p07Ops) error { _, _, err := o.Children(ctx, "/old"); return err },
	"ChildrenW": func(ctx context.Context, o p07Ops) error {
		_, _, _, err := o.ChildrenW(ctx, "/old")
		return err
	},
	"CountAll":         func(ctx context.Context, o p07Ops) error { _, err := o.CountAll(ctx, "/old"); return err },
	"Create":           func(ctx context.Context, o p07Ops) error { _, err := o.Create(ctx, "/new", nil); return err },
	"CreateContainers": func(ctx context.Context, o p07Ops) error { return o.CreateContainers(ctx, "/new/a/b") },
	"Delete":           func(ctx context.Context, o p07Ops) error { return o.Delete(ctx, "/old", 0) },
	"CreateResult": func(ctx context.Context, o p07Ops) error {
		_, err := o.CreateResult(ctx, "/new", nil)
		return err
	},
	"DeleteGuaranteed": func(ctx context.Context, o p07Ops) error { return o.DeleteGuaranteed(ctx, "/old") },
	"Ephemerals":       func(ctx context.Context, o p07Ops) error { _, err := o.Ephemerals(ctx, "/old"); return err },
	"DeleteRecursive":  func(ctx context.Context, o p07Ops) error { return o.DeleteRecursive(ctx, "/old") },
	"Exists":           func(ctx context.Context, o p07Ops) error { _, err := o.Exists(ctx, "/old"); return err },
	"ExistsW":          func(ctx context.Context, o p07Ops) error { _, _, err := o.ExistsW(ctx, "/new"); return err },
	"Get":              func(ctx context.Context, o p07Ops) error { _, _, err := o.Get(ctx, "/old"); return err },
	"GetACL":           func(ctx context.Context, o p07Ops) error { _, _, err := o.GetACL(ctx, "/old"); return err },
	"GetW":             func(ctx context.Context, o p07Ops) error { _, _, _, err := o.GetW(ctx, "/old"); return err },
	"Multi": func(ctx context.Context, o p07Ops) error {
		_, err := o.Multi(ctx, framework.CreateOp("/p07/new", nil, framework.Ephemeral(), framework.Protected()))
		return err
	},
	"MultiRead": func(ctx context.Context, o p07Ops) error {
		_, err := o.MultiRead(ctx, framework.GetOp("/old"))
		return err
	},
	"Set": func(ctx context.Context, o p07Ops) error { _, err := o.Set(ctx, "/old", nil, 0); return err },
	"SetACL": func(ctx context.Context, o p07Ops) error {
		_, err := o.SetACL(ctx, "/old", zk.WorldACL(zk.PermAll), 0)
		return err
	},
	"Sync": func(ctx context.Context, o p07Ops) error { return o.Sync(ctx, "/old") },
}

var p07RecipeCalls = map[string]p07Call{
	"Mutex.Acquire": func(ctx context.Context, on *p07Subject) error {
		_, err := on.mutex.Acquire(ctx)
		return err
	},
	"Mutex.TryAcquire": func(ctx context.Context, on *p07Subject) error {
		_, err := on.mutex.TryAcquire(ctx)
		return err
	},
	"Mutex.AcquireWithin": func(ctx context.Context, on *p07Subject) error {
		_, err := on.mutex.AcquireWithin(ctx, time.Hour)
		return err
	},
	"Mutex.Participants": func(ctx context.Context, on *p07Subject) error {
		_, err := on.mutex.Participants(ctx)
		return err
	},
	"Mutex.Locker": func(ctx context.Context, on *p07Subject) (err error) { // Lock reports errors only by a panic
		defer func() { err, _ = recover().(error) }()
		on.mutex.Locker(ctx).Lock()
		return nil
	},
	"group.Members": func(ctx context.Context, on *p07Subject) error {
		_, err := group.Members(ctx, on.client, "/p07/group")
		return err
	},
	"Registry.Names": func(ctx context.Context, on *p07Subject) error {
		return p07Registry(on, func(r *discovery.Registry) error { _, err := r.Names(ctx); return err })
	},
	"Registry.Instances": func(ctx context.Context, on *p07Subject) error {
		return p07Registry(on, func(r *discovery.Registry) error { _, err := r.Instances(ctx, "a"); return err })
	},
	"Registry.Instance": func(ctx context.Context, on *p07Subject) error {
		return p07Registry(on, func(r *discovery.Registry) error { _, err := r.Instance(ctx, "a", "b"); return err })
	},
	"inspect.Show": func(ctx context.Context, on *p07Subject) error {
		_, err := inspect.Show(ctx, on.client, "/old")
		return err
	},
	"inspect.Walk": func(ctx context.Context, on *p07Subject) (err error) {
		for _, err = range inspect.Walk(ctx, on.client, "/") {
		}
		return err
	},
	"inspect.Session": func(ctx context.Context, on *p07Subject) error {
		_, err := inspect.Session(ctx, on.client, "/", 1)
		return err
	},
	"inspect.Confirm": func(ctx context.Context, on *p07Subject) error {
		_, err := inspect.Confirm(ctx, on.client, inspect.Cycle{{Path: "/", Waits: inspect.Node{Path: "/old"}}})
		return err
	},
	"inspect.Break": func(ctx context.Context, on *p07Subject) error {
		_, err := inspect.Break(ctx, on.client, inspect.Node{Path: p07Lock + "/_c_1-lock-0000000000", Token: 1})
		return err
	},
	"Barrier.Set": func(ctx context.Context, on *p07Subject) error {
		return p07Barrier(on, func(b *barrier.Barrier) error { return b.Set(ctx) })
	},
	"Barrier.Remove": func(ctx context.Context, on *p07Subject) error {
		return p07Barrier(on, func(b *barrier.Barrier) error { return b.Remove(ctx) })
	},
	"CountDown.Count": func(ctx context.Context, on *p07Subject) error {
		return p07Latch(on, func(l *barrier.CountDown) error { _, err := l.Count(ctx); return err })
	},
	"Double.Enter": func(ctx context.Context, on *p07Subject) error {
		d, err := barrier.NewDouble(on.client, "/p07/double", 1)
		if err == nil {
			_, err = d.Enter(ctx)
		}
		return err
	},
	"Lock.Acquire": func(ctx context.Context, on *p07Subject) error {
		return p07Striped(on, func(l *striped.Lock) error { _, err := l.Acquire(ctx); return err })
	},
	"Lock.TryAcquire": func(ctx context.Context, on *p07Subject) error {
		return p07Striped(on, func(l *striped.Lock) error { _, err := l.TryAcquire(ctx); return err })
	},
	"Lock.AcquireWithin": func(ctx context.Context, on *p07Subject) error {
		return p07Striped(on, func(l *striped.Lock) error { _, err := l.AcquireWithin(ctx, time.Hour); return err })
	},
	"recipes.Revoke": func(ctx context.Context, on *p07Subject) error {
		return recipes.Revoke(ctx, on.client, recipes.Participant{Node: p07Lock + "/_c_1-lock-0000000000"})
	},
}

func p07Striped(on *p07Subject, do func(*striped.Lock) error) error {
	s, err := striped.New(on.client, "/p07/striped", 4)
	if err != nil {
		return err
	}
	return do(s.ForAll("a", "b"))
}

func p07Condition(on *p07Subject, do func(*condition.Condition) error) error {
	c, err := condition.New(on.held, "/p07/condition")
	if err != nil {
		return err
	}
	return do(c)
}

func p07Registry(on *p07Subject, do func(*discovery.Registry) error) error {
	r, err := discovery.New(on.client, "/p07/services")
	if err != nil {
		return err
	}
	return do(r)
}

func p07Barrier(on *p07Subject, do func(*barrier.Barrier) error) error {
	b, err := barrier.New(on.client, "/p07/barrier")
	if err != nil {
		return err
	}
	return do(b)
}

func p07Latch(on *p07Subject, do func(*barrier.CountDown) error) error {
	l, err := barrier.NewCountDown(on.client, "/p07/latch", 1)
	if err != nil {
		return err
	}
	return do(l)
}

func p07View(on *p07Subject, do func(*discovery.View) error) error {
	return p07Registry(on, func(r *discovery.Registry) error {
		v, err := r.View("a")
		if err != nil {
			return err
		}
		defer v.Close()
		return do(v)
	})
}

var p07NumberCalls = map[string]p07Call{
	"Atomic.Get": p07Atomic(func(ctx context.Context, a *counter.Atomic) error { _, err := a.Get(ctx); return err }),
	"Atomic.Add": p07Atomic(func(ctx context.Context, a *counter.Atomic) error { _, err := a.Add(ctx, 1); return err }),
	"Atomic.Set": p07Atomic(func(ctx context.Context, a *counter.Atomic) error { return a.Set(ctx, 1) }),
	"Atomic.CompareAndSet": p07Atomic(func(ctx context.Context, a *counter.Atomic) error {
		_, err := a.CompareAndSet(ctx, 0, 1)
		return err
	}),
	"Sequence.Next": p07Atomic(func(ctx context.Context, a *counter.Atomic) error {
		s, err := counter.NewSequence(a, 10)
		if err != nil {
			return err
		}
		_, err = s.Next(ctx)
		return err
	}),
	"Count.Get": p07Count(func(ctx context.Context, n *counter.Count) error { _, err := n.Get(ctx); return err }),
	"Count.GetVersioned": p07Count(func(ctx context.Context, n *counter.Count) error {
		_, err := n.GetVersioned(ctx)
		return err
	}),
	"Count.Add": p07Count(func(ctx context.Context, n *counter.Count) error { _, err := n.Add(ctx, 1); return err }),
	"Count.Set": p07Count(func(ctx context.Context, n *counter.Count) error { return n.Set(ctx, 1) }),
	"Count.CompareAndSet": p07Count(func(ctx context.Context, n *counter.Count) error {
		_, _, err := n.CompareAndSet(ctx, counter.Versioned[int32]{}, 1)
		return err
	}),
	"Value.Get": p07Value(func(ctx context.Context, v *counter.Value) error { _, err := v.Get(ctx); return err }),
	"Value.GetVersioned": p07Value(func(ctx context.Context, v *counter.Value) error {
		_, err := v.GetVersioned(ctx)
		return err
	}),
	"Value.Set": p07Value(func(ctx context.Context, v *counter.Value) error { return v.Set(ctx, nil) }),
	"Value.CompareAndSet": p07Value(func(ctx context.Context, v *counter.Value) error {
		_, _, err := v.CompareAndSet(ctx, counter.Versioned[[]byte]{}, nil)
		return err
	}),
}

func p07Atomic(do func(context.Context, *counter.Atomic) error) p07Call {
	return func(ctx context.Context, on *p07Subject) error {
		a, err := counter.NewAtomic(on.client, "/p07/number")
		if err != nil {
			return err
		}
		return do(ctx, a)
	}
}

func p07Count(do func(context.Context, *counter.Count) error) p07Call {
	return func(ctx context.Context, on *p07Subject) error {
		n, err := counter.NewCount(on.client, "/p07/number", 0)
		if err != nil {
			return err
		}
		return do(ctx, n)
	}
}

func p07Value(do func(context.Context, *counter.Value) error) p07Call {
	return func(ctx context.Context, on *p07Subject) error {
		v, err := counter.NewValue(on.client, "/p07/number", nil)
		if err != nil {
			return err
		}
		return do(ctx, v)
	}
}

// p07StandingCalls wait for a node that is kept, or for a view, through failures of any number.
// p07StandingCalls wait for a node that is kept, for a view or at a barrier, through failures of any
// number.
var p07StandingCalls = map[string]p07Call{
	"group.Join": func(ctx context.Context, on *p07Subject) error {
		_, err := group.Join(ctx, on.client, "/p07/group", "a", nil)
		return err
	},
	"Node.WaitReady": func(ctx context.Context, on *p07Subject) error {
		node, err := persistent.New(on.client, "/p07/node", nil)
		if err == nil {
			err = node.Start(ctx)
		}
		if err != nil {
			return err
		}
		return node.WaitReady(ctx)
	},
	"Registration.WaitReady": func(ctx context.Context, on *p07Subject) error {
		return p07Registry(on, func(r *discovery.Registry) error {
			self, err := r.Register(discovery.Instance{Name: "a"})
			if err != nil {
				return err
			}
			return self.WaitReady(ctx)
		})
	},
	"Barrier.Wait": func(ctx context.Context, on *p07Subject) error {
		return p07Barrier(on, func(b *barrier.Barrier) error { return b.Wait(ctx) })
	},
	"Cyclic.Await": func(ctx context.Context, on *p07Subject) error {
		b, err := barrier.NewCyclic(on.client, "/p07/cyclic", 1)
		if err == nil {
			_, err = b.Await(ctx)
		}
		return err
	},
	"CountDown.CountDown": func(ctx context.Context, on *p07Subject) error {
		return p07Latch(on, func(l *barrier.CountDown) error { return l.CountDown(ctx) })
	},
	"CountDown.Wait": func(ctx context.Context, on *p07Subject) error {
		return p07Latch(on, func(l *barrier.CountDown) error { return l.Wait(ctx) })
	},
	"CountDown.Delete": func(ctx context.Context, on *p07Subject) error {
		return p07Latch(on, func(l *barrier.CountDown) error { return l.Delete(ctx) })
	},
	"View.WaitReady": func(ctx context.Context, on *p07Subject) error {
		return p07View(on, func(v *discovery.View) error { return v.WaitReady(ctx) })
	},
	"Provider.Pick": func(ctx context.Context, on *p07Subject) error {
		return p07View(on, func(v *discovery.View) error {
			p, err := discovery.NewProvider(v)
			if err != nil {
				return err
			}
			_, err = p.Pick(ctx)
			return err
		})
	},
}

var p07ConnectionCalls = map[string]p07Call{
	"Client.AddWatch": func(ctx context.Context, on *p07Subject) error {
		_, err := on.client.AddWatch(ctx, "/old", framework.WatchTree, func(framework.WatchEvent) {})
		return err
	},
	"Client.Session": func(ctx context.Context, on *p07Subject) error {
		_, err := on.client.Session(ctx)
		return err
	},
	"Client.Outlast": func(ctx context.Context, on *p07Subject) error {
		if !on.client.Outlast(ctx, framework.ErrSessionLost) {
			return ctx.Err()
		}
		return nil
	},
	"Client.WaitConnected": func(ctx context.Context, on *p07Subject) error { return on.client.WaitConnected(ctx) },
}

var p07HoldCalls = map[string]p07Call{
	"Hold.Guard": func(ctx context.Context, on *p07Subject) error {
		_, err := on.hold.Guard(ctx, framework.SetOp("/old", nil, -1))
		return err
	},
	"Hold.Guard of nothing": func(ctx context.Context, on *p07Subject) error {
		_, err := on.hold.Guard(ctx)
		return err
	},
	"Condition.Wait": func(ctx context.Context, on *p07Subject) error {
		return p07Condition(on, func(c *condition.Condition) error { _, err := c.Wait(ctx, on.hold); return err })
	},
	"Condition.WaitWithin": func(ctx context.Context, on *p07Subject) error {
		return p07Condition(on, func(c *condition.Condition) error {
			_, _, err := c.WaitWithin(ctx, on.hold, time.Hour)
			return err
		})
	},
	"Condition.Signal": func(ctx context.Context, on *p07Subject) error {
		return p07Condition(on, func(c *condition.Condition) error { return c.Signal(ctx, on.hold) })
	},
	"Condition.Broadcast": func(ctx context.Context, on *p07Subject) error {
		return p07Condition(on, func(c *condition.Condition) error { return c.Broadcast(ctx, on.hold) })
	},
	"Mutex.Acquire of what is held": func(ctx context.Context, on *p07Subject) error {
		_, err := on.held.Acquire(ctx)
		return err
	},
}

// p07Calls returns all calls but those with the given names.
func p07Calls(without ...string) map[string]p07Call {
	calls := map[string]p07Call{}
	for name, do := range p07OpCalls {
		calls["Client."+name] = func(ctx context.Context, on *p07Subject) error { return do(ctx, on.client) }
		calls["Session."+name] = func(ctx context.Context, on *p07Subject) error { return do(ctx, on.session) }
	}
	for _, more := range []map[string]p07Call{
		p07RecipeCalls, p07NumberCalls, p07StandingCalls, p07ConnectionCalls, p07HoldCalls,
	} {
		for name, do := range more {
			calls[name] = do
		}
	}
	for _, name := range without {
		delete(calls, name)
	}
	return calls
}

// p07NeedSession returns the names of the calls that need a session or a hold.
func p07NeedSession() []string {
	var names []string
	for name := range p07OpCalls {
		names = append(names, "Session."+name)
	}
	for name := range p07HoldCalls {
		names = append(names, name)
	}
	return names
}

// The tests of deadlines call each method of clients, sessions, holds and recipes that takes a
// context.
func TestP07_NoCallThatTakesAContextIsForgotten(t *testing.T) {
	calls := p07Calls()
	takesContext := reflect.TypeFor[context.Context]()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[*framework.Client](), reflect.TypeFor[*framework.Session](),
		reflect.TypeFor[*mutex.Mutex](), reflect.TypeFor[*recipes.Hold](), reflect.TypeFor[*persistent.Node](),
		reflect.TypeFor[*discovery.Registry](), reflect.TypeFor[*discovery.Registration](),
		reflect.TypeFor[*discovery.View](), reflect.TypeFor[*discovery.Provider](),
		reflect.TypeFor[*counter.Atomic](), reflect.TypeFor[*counter.Count](), reflect.TypeFor[*counter.Value](),
		reflect.TypeFor[*counter.Sequence](),
		reflect.TypeFor[*barrier.Barrier](), reflect.TypeFor[*barrier.Double](),
		reflect.TypeFor[*barrier.Cyclic](), reflect.TypeFor[*barrier.CountDown](),
		reflect.TypeFor[*condition.Condition](), reflect.TypeFor[*striped.Lock](),
	} {
		for i := range typ.NumMethod() {
			method := typ.Method(i)
			name := fmt.Sprintf("%s.%s", typ.Elem().Name(), method.Name)
			if method.Type.NumIn() < 2 || method.Type.In(1) != takesContext {
				continue
			}
			if name == "Hold.Context" || name == "Node.Start" || method.Name == "Do" {
				continue // the first two send no request, the others are Acquire and Hold.Release
			}
			if method.Name == "Observe" {
				continue // the loop over its result ends with the context
			}
			require.Contains(t, calls, name)
		}
	}
}
