package recipes_test

import (
	"context"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/errtext"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
	"github.com/docent-zk/docent/retry"
)

// exportedErrors are the exported errors of the library by their names.
var exportedErrors = map[string]error{
	"cache.ErrClosed":            cache.ErrClosed,
	"barrier.ErrLeft":            barrier.ErrLeft,
	"barrier.ErrNodeDeleted":     barrier.ErrNodeDeleted,
	"barrier.ErrNotOpen":         barrier.ErrNotOpen,
	"barrier.ErrParties":         barrier.ErrParties,
	"cache.ErrTooLarge":          cache.ErrTooLarge,
	"discovery.ErrClosed":        discovery.ErrClosed,
	"discovery.ErrIDInUse":       discovery.ErrIDInUse,
	"counter.ErrCorrupt":         counter.ErrCorrupt,
	"counter.ErrOverflow":        counter.ErrOverflow,
	"condition.ErrOtherHolds":    condition.ErrOtherHolds,
	"condition.ErrOtherLock":     condition.ErrOtherLock,
	"discovery.ErrNoInstance":    discovery.ErrNoInstance,
	"discovery.ErrPending":       discovery.ErrPending,
	"discovery.ErrUnreadable":    discovery.ErrUnreadable,
	"group.ErrIDInUse":           group.ErrIDInUse,
	"group.ErrClosed":            group.ErrClosed,
	"group.ErrNoPayload":         group.ErrNoPayload,
	"group.ErrPending":           group.ErrPending,
	"persistent.ErrClosed":       persistent.ErrClosed,
	"inspect.ErrLimit":           inspect.ErrLimit,
	"persistent.ErrNotStarted":   persistent.ErrNotStarted,
	"persistent.ErrOccupied":     persistent.ErrOccupied,
	"persistent.ErrPending":      persistent.ErrPending,
	"persistent.ErrStarted":      persistent.ErrStarted,
	"fence.ErrNoToken":           fence.ErrNoToken,
	"fence.ErrStale":             fence.ErrStale,
	"framework.ErrAuthFailed":    framework.ErrAuthFailed,
	"framework.ErrClosed":        framework.ErrClosed,
	"framework.ErrInvalidPath":   framework.ErrInvalidPath,
	"framework.ErrNilContext":    framework.ErrNilContext,
	"framework.ErrNotConnected":  framework.ErrNotConnected,
	"framework.ErrRolledBack":    framework.ErrRolledBack,
	"framework.ErrSessionLost":   framework.ErrSessionLost,
	"framework.ErrSuspended":     framework.ErrSuspended,
	"framework.ErrTooLarge":      framework.ErrTooLarge,
	"framework.ErrUnimplemented": framework.ErrUnimplemented,
	"framework.ErrZeroValue":     framework.ErrZeroValue,
	"leader.ErrInterrupted":      leader.ErrInterrupted,
	"leader.ErrLatchClosed":      leader.ErrLatchClosed,
	"leader.ErrNotStarted":       leader.ErrNotStarted,
	"leader.ErrRunning":          leader.ErrRunning,
	"multilock.ErrPartlyHeld":    multilock.ErrPartlyHeld,
	"recipes.ErrForeignLost":     recipes.ErrForeignLost,
	"recipes.ErrManySessions":    recipes.ErrManySessions,
	"recipes.ErrNodeDeleted":     recipes.ErrNodeDeleted,
	"recipes.ErrNotAcquired":     recipes.ErrNotAcquired,
	"recipes.ErrNotHeld":         recipes.ErrNotHeld,
	"recipes.ErrReleasePending":  recipes.ErrReleasePending,
	"recipes.ErrUnsupported":     recipes.ErrUnsupported,
	"rwlock.ErrUpgrade":          rwlock.ErrUpgrade,
	"semaphore.ErrLimit":         semaphore.ErrLimit,
	"striped.ErrStripes":         striped.ErrStripes,
}

// The doc comment of package recipes has a line for each exported error of the library, and no
// other line.
func TestTableOfErrorsIsComplete(t *testing.T) {
	var declared, listed []string
	line := regexp.MustCompile(`(?m)^\t(\w+\.Err\w+)  +\S.*\S  +\S`)
	libraryFiles(t, func(f *ast.File) {
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if strings.HasPrefix(name.Name, "Err") {
							declared = append(declared, f.Name.Name+"."+name.Name)
						}
					}
				}
			}
		}
		if f.Name.Name == "recipes" && f.Doc != nil {
			for _, match := range line.FindAllStringSubmatch(f.Doc.Text(), -1) {
				listed = append(listed, match[1])
			}
		}
	})
	require.ElementsMatch(t, declared, listed, "the table in recipes/doc.go")
	for _, name := range declared {
		require.Contains(t, exportedErrors, name)
	}
}

// prefix matches the name of a package before a text.
var prefix = regexp.MustCompile(`(?m)(^|: )(` + strings.Join(errtext.Packages, "|") + `): `)

func TestExportedErrorsBeginWithTheNameOfTheirPackage(t *testing.T) {
	for name, err := range exportedErrors {
		pkg, _, _ := strings.Cut(name, ".")
		require.True(t, strings.HasPrefix(err.Error(), pkg+": "), "%s: %v", name, err)
		requireOnePrefix(t, err)
	}
}

// requireOnePrefix checks that no line of the text of an error has two names of packages.
func requireOnePrefix(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		require.LessOrEqual(t, len(prefix.FindAllString(line, -1)), 1, line)
	}
}

// provoked returns errors of the constructors and calls of all packages.
func provoked(t *testing.T) (all []error) {
	var none context.Context
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(recipes.ErrNotHeld)
	unreachable := testzk.Client(t, "127.0.0.1:1", framework.WithRetry(retry.Times(1, time.Millisecond)),
		framework.WithConnectTimeout(10*time.Millisecond))
	closed := testzk.Client(t, "127.0.0.1:1")
	require.NoError(t, closed.Close())
	add := func(_ any, err error) { all = append(all, err) }
	for _, c := range []*framework.Client{nil, {}, unreachable, unreachable.Namespace("/")} {
		for _, path := range []string{"/", "a"} {
			add(mutex.New(c, path))
			add(rwlock.New(c, path))
			add(semaphore.New(c, path, 1))
			add(semaphore.NewMutex(c, path))
			add(striped.New(c, path, 1))
			add(multilock.New(c, []string{path}))
			add(leader.New(c, path))
			add(leader.NewLatch(c, path))
			add(cache.New(c, "a"))
			add(counter.NewAtomic(c, path))
			add(counter.NewCount(c, path, 1))
			add(counter.NewValue(c, path, nil))
			add(discovery.New(c, "a"))
			add(persistent.New(c, "a", nil))
			add(group.Members(t.Context(), c, "a"))
			add(group.Join(t.Context(), c, "a", "b", nil))
			add(inspect.Show(t.Context(), c, "a"))
			add(inspect.Session(t.Context(), c, "/", 1))
			add(inspect.Break(t.Context(), c, inspect.Node{Path: path}))
			add(inspect.Confirm(t.Context(), c, inspect.Cycle{{Path: path, Waits: inspect.Node{Path: "/a"}}}))
		}
		for _, err := range leader.Observe(t.Context(), c, "a") {
			add(nil, err)
		}
	}
	add(framework.New("a/x/"))
	add(framework.New("a", framework.WithNamespace("/a")))
	add(nil, unreachable.SetServers("a//"))
	for _, ctx := range []context.Context{none, ended, t.Context()} {
		for _, c := range []*framework.Client{unreachable, closed} {
			mu, err := mutex.New(c, "/a")
			require.NoError(t, err)
			rw, err := rwlock.New(c, "/a")
			require.NoError(t, err)
			s, err := semaphore.New(c, "/a", 1)
			require.NoError(t, err)
			multi, err := multilock.New(c, []string{"/a", "/b"})
			require.NoError(t, err)
			sequence, err := multilock.Combine(mu, s)
			require.NoError(t, err)
			keys, err := striped.New(c, "/a", 1)
			require.NoError(t, err)
			for _, l := range []recipes.Locker{
				mu, rw.Read(), rw.Write(), s, multi, sequence, &mutex.Mutex{}, keys.For("a"), keys.ForAll(),
			} {
				add(l.Acquire(ctx))
				add(l.TryAcquire(ctx))
				add(recipes.AcquireWithin(ctx, l, time.Millisecond))
			}
			cond, err := condition.New(mu, "/b")
			require.NoError(t, err)
			add(cond.Wait(ctx, &recipes.Hold{}))
			add(nil, cond.Signal(ctx, nil))
			add(nil, (&condition.Condition{}).Broadcast(ctx, nil))
			add(condition.New(mu, "/a"))
			add(mu.Participants(ctx))
			add(s.Limit(ctx))
			add(nil, s.SetLimit(ctx, 2))
			number, err := counter.NewAtomic(c, "/a")
			require.NoError(t, err)
			add(number.Get(ctx))
			add(number.Add(ctx, 1))
			add(number.CompareAndSet(ctx, 1, 2))
			l, err := leader.NewLatch(c, "/a")
			require.NoError(t, err)
			add(l.Await(ctx))
			require.NoError(t, l.Close())
			add(l.Await(ctx))
			add(nil, l.Start(ctx))
			if ctx != t.Context() || c == closed {
				e, err := leader.New(c, "/a")
				require.NoError(t, err)
				add(nil, e.Run(ctx, func(context.Context, *leader.Term) error { return nil }))
			}
			_, _, err = c.Get(ctx, "/a")
			add(nil, err)
			add(c.Create(ctx, "a", nil))
			add(c.Multi(ctx, framework.CheckOp("a", -1)))
			add(nil, c.DeleteRecursive(ctx, "/"))
		}
	}
	add(nil, (&recipes.Hold{}).Release())
	add((&recipes.Hold{}).Guard(t.Context()))
	add(nil, (&leader.Term{}).Resign())
	add(nil, (&leader.Latch{}).Close())
	add(nil, (&framework.Client{}).Close())
	return all
}

func TestNoErrorHasTheNamesOfTwoPackages(t *testing.T) {
	for _, err := range provoked(t) {
		requireOnePrefix(t, err)
	}
}
