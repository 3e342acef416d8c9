package porting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/zktest"
)

// Loops that follow or keep a node go on after an outage that is longer than the session timeout
// and the client's retries.
func TestLoopsOutlastAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		loop func(ctx context.Context, client *framework.Client, see func(string)) error
		want string // what is seen last
	}{
		"followNode": {func(ctx context.Context, client *framework.Client, see func(string)) error {
			return followNode(ctx, client, "/group/b", func(data []byte) { see(string(data)) })
		}, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { require.Equal(t, c.want, seenAfterAnOutage(t, c.loop)) })
		})
	}
}

func seenAfterAnOutage(
	t *testing.T, loop func(ctx context.Context, client *framework.Client, see func(string)) error,
) (last string) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Create("/group", nil))
	require.NoError(t, srv.Create("/group/b", []byte("old")))
	client, err := framework.New(srv.MemAddr(), framework.WithDialer(srv.Client("a").DialContext))
	require.NoError(t, err)
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx, client, func(what string) { last = what }) }()
	synctest.Wait()
	srv.Stop()
	time.Sleep(5 * time.Minute)
	require.Empty(t, ended, "the loop has failed")
	require.NoError(t, srv.Start())
	time.Sleep(time.Minute) // the servers have deleted the nodes of the old session
	require.NoError(t, srv.Set("/group/b", []byte("new")))
	require.NoError(t, srv.Create("/group/c", nil))
	time.Sleep(time.Second)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	synctest.Wait() // see has been called
	return last
}

// The cause of a lost hold's context is ErrSessionLost. A loop under that context must not go on.
func TestLoopsEndWithTheContextOfALostHold(t *testing.T) {
	srv := zktest.Start(t)
	client := connect(srv)
	defer client.Close()
	for name, loop := range map[string]func(ctx context.Context) error{
		"followNode": func(ctx context.Context) error { return followNode(ctx, client, "/group", func([]byte) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, lose := context.WithCancelCause(t.Context())
			lose(framework.ErrSessionLost)
			ended := make(chan error, 1)
			go func() { ended <- loop(ctx) }()
			select {
			case err := <-ended:
				require.ErrorIs(t, err, framework.ErrSessionLost)
			case <-time.After(time.Minute):
				require.Fail(t, "the loop goes on")
			}
		})
	}
}
