package recipes_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/barrier"
	"github.com/docent-zk/docent/recipes/cache"
	"github.com/docent-zk/docent/recipes/condition"
	"github.com/docent-zk/docent/recipes/counter"
	"github.com/docent-zk/docent/recipes/discovery"
	"github.com/docent-zk/docent/recipes/ensembles"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/locktest"
	"github.com/docent-zk/docent/recipes/multilock"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/recipes/striped"
)

// zeroValues are the zero values of the exported structs that a constructor makes.
var zeroValues = map[string]any{
	"barrier.Barrier":           &barrier.Barrier{},
	"barrier.CountDown":         &barrier.CountDown{},
	"barrier.Cyclic":            &barrier.Cyclic{},
	"barrier.Double":            &barrier.Double{},
	"barrier.Entry":             &barrier.Entry{},
	"cache.Cache":               &cache.Cache{},
	"counter.Atomic":            &counter.Atomic{},
	"counter.Count":             &counter.Count{},
	"counter.Sequence":          &counter.Sequence{},
	"counter.Value":             &counter.Value{},
	"condition.Condition":       &condition.Condition{},
	"discovery.Provider":        &discovery.Provider{},
	"discovery.Registration":    &discovery.Registration{},
	"discovery.Registry":        &discovery.Registry{},
	"discovery.View":            &discovery.View{},
	"ensembles.Lock":            &ensembles.Lock{},
	"ensembles.Set":             &ensembles.Set{},
	"framework.Client":          &framework.Client{},
	"framework.PersistentWatch": &framework.PersistentWatch{},
	"framework.Session":         &framework.Session{},
	"framework.Watch":           &framework.Watch{},
	"group.Membership":          &group.Membership{},
	"persistent.Node":           &persistent.Node{},
	"leader.Election":           &leader.Election{},
	"leader.Latch":              &leader.Latch{},
	"leader.Term":               &leader.Term{},
	"multilock.MultiLock":       &multilock.MultiLock{},
	"mutex.Mutex":               &mutex.Mutex{},
	"recipes.Hold":              &recipes.Hold{},
	"rwlock.RWLock":             &rwlock.RWLock{},
	"rwlock.Side":               &rwlock.Side{},
	"semaphore.Mutex":           &semaphore.Mutex{},
	"semaphore.Semaphore":       &semaphore.Semaphore{},
	"striped.Lock":              &striped.Lock{},
	"striped.Striped":           &striped.Striped{},
}

// usableZeroValues are the zero values of the other exported structs, which are records, errors and
// what is documented to be usable as it is. Their methods must not panic.
var usableZeroValues = map[string]any{
	"cache.Event":           &cache.Event{},
	"cache.Node":            &cache.Node{},
	"counter.Versioned":     &counter.Versioned[int32]{},
	"discovery.Event":       &discovery.Event{},
	"discovery.Instance":    &discovery.Instance{},
	"discovery.URIPart":     &discovery.URIPart{},
	"discovery.URISpec":     &discovery.URISpec{},
	"ensembles.Ensemble":    &ensembles.Ensemble{},
	"fence.Register":        &fence.Register{},
	"framework.ReadOp":      &framework.ReadOp{},
	"framework.ReadResult":  &framework.ReadResult{},
	"framework.WatchEvent":  &framework.WatchEvent{},
	"framework.Error":       &framework.Error{},
	"framework.Result":      &framework.Result{},
	"framework.ServerError": &framework.ServerError{},
	"framework.StateChange": &framework.StateChange{},
	"group.Change":          &group.Change{},
	"group.Member":          &group.Member{},
	"inspect.Node":          &inspect.Node{},
	"inspect.Object":        &inspect.Object{},
	"inspect.Place":         &inspect.Place{},
	"inspect.SessionView":   &inspect.SessionView{},
	"inspect.Step":          &inspect.Step{},
	"leader.Change":         &leader.Change{},
	"locktest.Client":       &locktest.Client{},
	"locktest.Service":      &locktest.Service{},
	"metrics.Gauges":        &metrics.Gauges{},
	"metrics.Labels":        &metrics.Labels{},
	"metrics.Reading":       &metrics.Reading{},
	"recipes.ForeignHold":   &recipes.ForeignHold{},
	"mutex.Handoff":         &mutex.Handoff{},
	"recipes.Identity":      &recipes.Identity{},
	"recipes.Participant":   &recipes.Participant{},
}

// libraryFiles calls fn for each file of the library's public packages.
func libraryFiles(t *testing.T, fn func(f *ast.File)) {
	t.Helper()
	for _, root := range []string{"../framework", "../recipes", "../retry", "../fence"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "internal" || d.Name() == "testdata"):
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err == nil {
				fn(f)
			}
			return err
		})
		require.NoError(t, err)
	}
}

func TestNoExportedStructIsMissingInTheTestOfZeroValues(t *testing.T) {
	libraryFiles(t, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if _, ok := spec.Type.(*ast.StructType); ok {
					name := f.Name.Name + "." + spec.Name.Name
					require.True(t, zeroValues[name] != nil || usableZeroValues[name] != nil, "%s is missing", name)
				}
			}
			_, isFunc := n.(*ast.FuncDecl)
			return !isFunc
		})
	})
}

func TestMethodsOfZeroValuesFailAndDoNotPanic(t *testing.T) {
	for name, zero := range zeroValues {
		value := reflect.ValueOf(zero)
		for i := range value.NumMethod() {
			method := name + "." + value.Type().Method(i).Name
			results := call(value.Method(i))
			last := len(results) - 1
			if last >= 0 && results[last].Type() == reflect.TypeFor[error]() {
				err, _ := results[last].Interface().(error)
				require.ErrorIs(t, err, framework.ErrZeroValue, method)
				results = results[:last]
				for _, r := range results {
					require.True(t, r.IsZero(), "%s returns a result with its error", method)
				}
				continue
			}
			for _, r := range results {
				requireNothing(t, method, r)
			}
		}
	}
}

func TestMethodsOfUsableZeroValuesDoNotPanic(t *testing.T) {
	for name, zero := range usableZeroValues {
		value := reflect.ValueOf(zero)
		for i := range value.NumMethod() {
			require.NotPanics(t, func() { call(value.Method(i)) }, name+"."+value.Type().Method(i).Name)
		}
	}
}

// call calls a method with arguments that are not nil, and without variadic ones.
func call(method reflect.Value) []reflect.Value {
	var args []reflect.Value
	n := method.Type().NumIn()
	if method.Type().IsVariadic() {
		n--
	}
	for i := range n {
		args = append(args, argument(method.Type().In(i)))
	}
	return method.Call(args)
}

func argument(typ reflect.Type) reflect.Value {
	switch {
	case typ == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case typ == reflect.TypeFor[zapcore.ObjectEncoder]():
		return reflect.ValueOf(zapcore.NewMapObjectEncoder())
	case typ.Kind() == reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) (results []reflect.Value) {
			for i := range typ.NumOut() {
				results = append(results, reflect.Zero(typ.Out(i)))
			}
			return results
		})
	case typ.Kind() == reflect.String:
		return reflect.ValueOf("/a").Convert(typ)
	case typ.ConvertibleTo(reflect.TypeFor[int]()):
		return reflect.ValueOf(1).Convert(typ)
	}
	return reflect.Zero(typ)
}

// requireNothing checks a result of a method that returns no error.
func requireNothing(t *testing.T, method string, result reflect.Value) {
	t.Helper()
	if result.IsZero() {
		return
	}
	switch r := result.Interface().(type) {
	case <-chan struct{}:
		select {
		case <-r:
		default:
			require.Fail(t, "the channel is open", method)
		}
	case context.Context:
		require.ErrorIs(t, context.Cause(r), framework.ErrZeroValue, method)
	case sync.Locker:
		defer func() {
			err, _ := recover().(error)
			require.ErrorIs(t, err, framework.ErrZeroValue, method)
		}()
		r.Lock()
	case func():
		r()
	case iter.Seq2[string, *cache.Node]:
		for path := range r {
			require.Fail(t, "a node", path)
		}
	case iter.Seq2[int64, error]:
		requireOneError(t, method, r)
	case iter.Seq2[int32, error]:
		requireOneError(t, method, r)
	case iter.Seq2[[]byte, error]:
		requireOneError(t, method, r)
	case framework.State:
		require.Equal(t, framework.Closed, r, method)
	case *zap.Logger:
		r.Info("nothing")
	case *framework.Client, *rwlock.Side, *striped.Lock: // zero values, which have lines of their own
		require.True(t, result.Elem().IsZero(), method)
	default:
		require.Fail(t, "a result that is not zero", "%s: %v", method, r)
	}
}

// requireOneError checks a sequence that ends with its error.
func requireOneError[T any](t *testing.T, method string, all iter.Seq2[T, error]) {
	t.Helper()
	errs := 0
	for value, err := range all {
		require.Zero(t, value, method)
		require.ErrorIs(t, err, framework.ErrZeroValue, method)
		errs++
	}
	require.Equal(t, 1, errs, method)
}

func TestMethodsOfNilPointersPanic(t *testing.T) {
	for name, zero := range zeroValues {
		none := reflect.Zero(reflect.TypeOf(zero))
		for i := range none.NumMethod() {
			method := name + "." + none.Type().Method(i).Name
			if method == "mutex.Mutex.Locker" || method == "cache.Cache.All" {
				continue // Lock panics, and so does a loop
			}
			require.Panics(t, func() { call(none.Method(i)) }, method)
		}
	}
}
