package persistent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/persistent"
	"github.com/docent-zk/docent/zktest"
)

func TestInvalidArgumentsAreRefusedAndNamed(t *testing.T) {
	c := testzk.Client(t, "127.0.0.1:1")
	type options []persistent.Option
	for name, bad := range map[string]struct {
		client *framework.Client
		path   string
		opts   options
		says   []string
	}{
		"nil client":    {nil, path, nil, []string{"client is nil"}},
		"zero client":   {&framework.Client{}, path, nil, []string{framework.ErrZeroValue.Error()}},
		"relative path": {c, "host", nil, []string{framework.ErrInvalidPath.Error(), "host"}},
		"root":          {c, "/", nil, []string{framework.ErrInvalidPath.Error(), `"/"`}},
		"slash":         {c, "/host/", nil, []string{framework.ErrInvalidPath.Error(), `"/host/"`}},
		"nil option":    {c, path, options{persistent.WithPersistence(), nil}, []string{"option 1 is nil"}},
		"two modes": {c, path, options{persistent.WithPersistence(), persistent.WithContainer()},
			[]string{"WithPersistence", "WithContainer"}},
		"no time to live": {c, path, options{persistent.WithTTL(0)}, []string{"WithTTL: 0s"}},
		"too long to live": {c, path, options{persistent.WithTTL(1 << 40 * time.Millisecond)},
			[]string{"WithTTL: 3054"}},
		"numbered container": {c, path, options{persistent.WithContainer(), persistent.WithSequence()},
			[]string{"WithContainer", "WithSequence"}},
		"empty ACL":        {c, path, options{persistent.WithACL()}, []string{"WithACL: "}},
		"negative timeout": {c, path, options{persistent.WithOccupiedTimeout(-time.Second)}, []string{"-1s"}},
		"nil takeover":     {c, path, options{persistent.WithTakeover(nil)}, []string{"WithTakeover: nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := persistent.New(bad.client, bad.path, nil, bad.opts...)
			require.Error(t, err)
			require.True(t, strings.HasPrefix(err.Error(), "new node: "), err.Error())
			for _, word := range bad.says {
				require.ErrorContains(t, err, word)
			}
		})
	}
	_, err := persistent.New(c, "/", nil, persistent.WithSequence())
	require.ErrorIs(t, err, framework.ErrInvalidPath)
	_, err = persistent.New(c, "/workers/", nil, persistent.WithSequence())
	require.NoError(t, err)
}

func TestInvalidCallsAreErrors(t *testing.T) {
	n := newNode(t, testzk.Client(t, "127.0.0.1:1"), path)
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	var none context.Context
	require.ErrorIs(t, n.Start(none), framework.ErrNilContext)
	require.ErrorIs(t, n.Start(ended), why)
	require.ErrorIs(t, n.WaitReady(none), framework.ErrNilContext)
	require.ErrorIs(t, n.WaitReady(ended), why)
	require.NoError(t, n.Close(), "it was not started")
	<-n.Done()
	require.ErrorIs(t, n.Err(), persistent.ErrClosed)
	require.ErrorIs(t, n.Start(t.Context()), persistent.ErrClosed)
	for _, zero := range []*persistent.Node{{}} {
		require.ErrorIs(t, zero.Start(t.Context()), framework.ErrZeroValue)
		require.ErrorIs(t, zero.WaitReady(t.Context()), framework.ErrZeroValue)
		require.ErrorIs(t, zero.SetData(nil), framework.ErrZeroValue)
		require.ErrorIs(t, zero.Close(), framework.ErrZeroValue)
		require.ErrorIs(t, zero.Err(), framework.ErrZeroValue)
		require.Empty(t, zero.Path())
		<-zero.Done()
	}
	closed, err := framework.New("127.0.0.1:1")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorIs(t, newNode(t, closed, path).Start(t.Context()), framework.ErrClosed)
}

func TestNodeWithoutAServerClosesAtOnce(t *testing.T) {
	n := newNode(t, testzk.Client(t, "127.0.0.1:1"), path)
	require.NoError(t, n.Start(t.Context()))
	require.NoError(t, n.Close())
}

func TestTooMuchDataIsRefusedAndTheNodeStays(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zktest.Server) {
		c, much := client(t, srv, "a"), make([]byte, 2<<20)
		_, err := persistent.New(c, path, much)
		require.ErrorIs(t, err, framework.ErrTooLarge)
		for name, opts := range map[string][]persistent.Option{
			"fixed": nil, "protected": {persistent.WithProtection()}, "sequential": {persistent.WithSequence()},
		} {
			n := kept(t, c, path, opts...)
			require.ErrorIs(t, n.SetData(much), framework.ErrTooLarge, name)
			require.NoError(t, n.WaitReady(t.Context()), name)
			require.Equal(t, data, content(t, srv, n.Path()), name)
			most := largest(t, n)
			await(t, n)
			require.Len(t, content(t, srv, n.Path()), most, name)
			expire(t, srv, "a")
			settle()
			outage()
			require.NoError(t, n.Err(), name)
			await(t, n)
			require.Len(t, content(t, srv, n.Path()), most, name)
			require.NoError(t, n.Close())
		}
	})
}

// largest sets the largest data that n takes, and returns its length.
func largest(t *testing.T, n *persistent.Node) int {
	t.Helper()
	least, most := 1<<19, 1<<20
	for most-least > 1 {
		middle := (least + most) / 2
		err := n.SetData(make([]byte, middle))
		if err == nil {
			least = middle
			continue
		}
		require.ErrorIs(t, err, framework.ErrTooLarge)
		most = middle
	}
	require.NoError(t, n.SetData(make([]byte, least)))
	return least
}
