package ownership_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/bridge"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/internal/ownership"
)

// lockKey is the key of a test's lock.
type lockKey string

// owner makes holds of its own nodes.
type owner struct {
	*framework.Client
	t       testing.TB
	session *framework.Session
	root    string
	made    int
}

func newOwner(t testing.TB, opts ...framework.Option) *owner {
	t.Helper()
	c := testzk.Connected(t, testzk.Connect(), opts...)
	s, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	o := &owner{Client: c, t: t, session: s, root: testzk.Path(t)}
	_, err = c.Create(testzk.Context(t), o.root, nil, framework.Parents())
	require.NoError(t, err)
	return o
}

// grant returns a Grant of the named locks with the tokens 101, 102 and so on. It has one node for
// each lock and more further nodes.
func (o *owner) grant(more int, locks ...string) ownership.Grant {
	o.t.Helper()
	lifetime := bridge.OfSession(o.session).Lifetime()
	g := ownership.Grant{Session: o.session, Lifetime: lifetime, Recipe: "test", Log: zap.NewNop()}
	for i, name := range locks {
		g.Locks = append(g.Locks, ownership.Lock{Path: name, Key: lockKey(name), Token: int64(101 + i)})
	}
	for range len(locks) + more {
		o.made++
		node, err := o.Create(testzk.Context(o.t), fmt.Sprintf("%s/%d", o.root, o.made), nil, framework.Ephemeral())
		require.NoError(o.t, err)
		g.Nodes = append(g.Nodes, ownership.Node{Path: node})
	}
	return g
}

func (o *owner) hold(locks ...string) *ownership.Hold {
	o.t.Helper()
	return ownership.New(o.grant(0, locks...))
}

func TestHoldOfSeveralLocksHasAllTokensAndPaths(t *testing.T) {
	o := newOwner(t)
	g := o.grant(1, "a", "b", "c")
	g.Locks[1].Token = 300
	h := ownership.New(g)
	require.Equal(t, []int64{101, 300, 103}, h.Tokens())
	require.Zero(t, h.Token(), "no lock has the tokens of all")
	require.Len(t, h.Paths(), 4)
	require.Equal(t, g.Nodes[0].Path, h.Path())
	require.NoError(t, h.Release())
	require.Equal(t, []int64{101, 300, 103}, h.Tokens(), "readable after the release")
	require.Len(t, h.Paths(), 4)
	testzk.Empty(t, o.root)
}

func TestJoinedHoldHasTokensAndPathsOfItsParts(t *testing.T) {
	o := newOwner(t)
	first, second, third := o.hold("a"), o.hold("b", "c"), ownership.New(o.grant(2, "d"))
	inner := ownership.Combine(nil, second, third)
	h := ownership.Combine(nil, first, inner)
	require.Equal(t, []int64{101, 101, 102, 101}, h.Tokens())
	require.Zero(t, h.Token())
	single := ownership.Combine(nil, o.hold("e"))
	require.EqualValues(t, 101, single.Token())
	require.NoError(t, single.Release())
	require.Equal(t, append(append(first.Paths(), second.Paths()...), third.Paths()...), h.Paths())
	require.Equal(t, first.Path(), h.Path())
	require.Equal(t, o.session.ID(), h.Session().ID())
	require.NoError(t, h.Release())
	for _, part := range []*ownership.Hold{first, second, third, inner} {
		require.ErrorIs(t, part.Err(), ownership.ErrNotHeld)
	}
	testzk.Empty(t, o.root)
}

func TestZeroAndNilHoldsHaveNothing(t *testing.T) {
	for name, h := range map[string]*ownership.Hold{"nil": nil, "zero": {}} {
		require.Nil(t, h.Tokens(), name)
		require.Nil(t, h.Paths(), name)
		require.Zero(t, h.Token(), name)
		require.Empty(t, h.Path(), name)
		require.Nil(t, h.Session(), name)
		_, err := h.Guard(context.Background())
		require.ErrorIs(t, err, ownership.ErrNotHeld, name)
	}
}

func TestContextCarriesEachOfSeveralLocks(t *testing.T) {
	o := newOwner(t)
	g := o.grant(0, "a", "b")
	g.Key = lockKey("a and b")
	h := ownership.New(g)
	type other string
	ctx := h.Context(context.WithValue(context.Background(), other("a"), "kept"))
	require.Equal(t, "kept", ctx.Value(other("a")))
	for _, key := range []lockKey{"a", "b", "a and b"} {
		found, ok := ownership.Current(ctx, key)
		require.True(t, ok, key)
		require.Same(t, h, found)
	}
	for _, key := range []any{lockKey("c"), "a", nil} {
		_, ok := ownership.Current(ctx, key)
		require.False(t, ok, key)
	}
	under := o.hold("c")
	both := under.Context(ctx)
	for _, key := range []lockKey{"a", "b", "a and b", "c"} {
		_, ok := ownership.Current(both, key)
		require.True(t, ok, key)
	}
	require.NoError(t, h.Release())
	_, ok := ownership.Current(both, lockKey("a"))
	require.False(t, ok, "a released hold is not found")
	_, ok = ownership.Current(both, lockKey("c"))
	require.True(t, ok)
	require.NoError(t, under.Release())
}

func TestContextOfJoinedHoldCarriesTheWholeOrItsParts(t *testing.T) {
	o := newOwner(t)
	first, second := o.hold("a"), o.hold("b", "c")
	whole := ownership.Combine(lockKey("all"), first, second)
	for _, key := range []lockKey{"a", "b", "c", "all"} {
		found, ok := ownership.Current(whole.Context(context.Background()), key)
		require.True(t, ok, key)
		require.Same(t, whole, found, key)
	}
	require.NoError(t, whole.Release())
	first, second = o.hold("a"), o.hold("b", "c")
	loose := ownership.Combine(nil, first, second)
	for key, want := range map[lockKey]*ownership.Hold{"a": first, "b": second, "c": second} {
		found, ok := ownership.Current(loose.Context(context.Background()), key)
		require.True(t, ok, key)
		require.Same(t, want, found, key)
	}
	require.NoError(t, loose.Release())
	_, ok := ownership.Current(ownership.Combine(nil, o.hold("d")).Context(context.Background()), nil)
	require.False(t, ok, "no hold is found without a key")
}

func TestLastReentrantHoldEndsAJoinedHold(t *testing.T) {
	o := newOwner(t)
	part := o.hold("a")
	h := ownership.Combine(lockKey("all"), part, o.hold("b"))
	ctx := h.Context(context.Background())
	inner, ok := ownership.Reenter(ctx, lockKey("all"))
	require.True(t, ok)
	require.NoError(t, h.Release())
	require.ErrorIs(t, h.Release(), ownership.ErrNotHeld)
	require.Error(t, ctx.Err())
	require.NoError(t, inner.Err())
	require.NoError(t, part.Err())
	_, err := inner.Guard(testzk.Context(t))
	require.NoError(t, err)
	_, ok = ownership.Reenter(ctx, lockKey("all"))
	require.False(t, ok, "that hold was released")
	require.NoError(t, inner.Release())
	require.ErrorIs(t, part.Err(), ownership.ErrNotHeld)
	testzk.Empty(t, o.root)
}

func TestJoiningALostHoldReleasesTheOthers(t *testing.T) {
	o := newOwner(t)
	lost, good := o.hold("a"), o.hold("b")
	require.NoError(t, o.Delete(testzk.Context(t), lost.Path(), -1))
	_, err := lost.Guard(testzk.Context(t))
	require.ErrorIs(t, err, ownership.ErrNodeDeleted)
	h := ownership.Combine(nil, good, lost)
	require.ErrorIs(t, h.Err(), ownership.ErrNodeDeleted)
	<-h.Done()
	<-good.Done()
	require.ErrorIs(t, h.Release(), ownership.ErrNodeDeleted)
	testzk.Empty(t, o.root)
}

func TestRevocationBeforeJoiningRevokesTheWhole(t *testing.T) {
	o := newOwner(t)
	g := o.grant(0, "a")
	g.Nodes[0].Data = []byte(ownership.RevokeMessage)
	h := ownership.Combine(nil, o.hold("b"), ownership.New(g))
	select {
	case <-h.Revoked():
	default:
		require.FailNow(t, "the revocation is not reported")
	}
	require.NoError(t, h.Release())
}

// Reentrant holds are released while a node is deleted and their state is read. Each hold ends
// once, no node is left, and all answers are right.
func TestReentrantHoldsAreReleasedWhileTheyAreLost(t *testing.T) {
	o := newOwner(t)
	observer := testzk.Observer(t)
	for range 20 {
		h := ownership.Combine(lockKey("all"), o.hold("a", "b"), ownership.Combine(nil, o.hold("c")))
		all := []*ownership.Hold{h}
		for range 4 {
			inner, ok := ownership.Reenter(h.Context(context.Background()), lockKey("all"))
			require.True(t, ok)
			all = append(all, inner)
		}
		target := h.Paths()[o.made%3]
		var running sync.WaitGroup
		errs := make([]error, len(all))
		for i, inner := range all {
			running.Go(func() {
				_, _ = inner.Guard(testzk.Context(t))
				errs[i] = inner.Release()
			})
			running.Go(func() {
				<-inner.Context(context.Background()).Done()
				_, _ = inner.Err(), inner.ValidUntil()
			})
		}
		running.Go(func() { _ = observer.Delete(target, -1) })
		running.Wait()
		for i, inner := range all {
			if errs[i] != nil {
				require.ErrorIs(t, errs[i], ownership.ErrNodeDeleted)
			}
			require.Error(t, inner.Err())
			require.ErrorIs(t, inner.Release(), ownership.ErrNotHeld)
		}
		testzk.Empty(t, o.root)
	}
}

func TestLossOfOneOfManyNodesDeletesTheOthers(t *testing.T) {
	o := newOwner(t)
	for i := range 3 {
		h := ownership.New(o.grant(2, "a"))
		require.NoError(t, o.Delete(testzk.Context(t), h.Paths()[i], -1))
		<-h.Done()
		require.ErrorContains(t, h.Err(), h.Paths()[i])
		testzk.Empty(t, o.root)
		require.True(t, errors.Is(h.Release(), ownership.ErrNodeDeleted))
	}
}

// stuck is a log sink that blocks at the end of a hold until free is closed.
type stuck struct{ free chan struct{} }

func (s stuck) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("hold ended")) {
		<-s.free
	}
	return len(b), nil
}

func (s stuck) Sync() error { return nil }

func TestAllHoldsOfASessionEndAlthoughTheLogBlocks(t *testing.T) {
	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	log := zap.New(zapcore.NewCore(encoder, stuck{free}, zap.InfoLevel))
	o := newOwner(t, framework.WithLogger(log))
	var holds []*ownership.Hold
	for range 3 {
		holds = append(holds, ownership.Combine(nil, o.hold("a"), o.hold("b")), o.hold("c"))
	}
	closed := make(chan error, 1)
	go func() { closed <- o.Close() }()
	for _, h := range holds {
		select {
		case <-h.Done():
		case <-time.After(testzk.Patience):
			require.Fail(t, "a hold is valid after its session was closed")
		}
		require.ErrorIs(t, h.Err(), framework.ErrClosed)
	}
	release()
	require.NoError(t, <-closed)
}
