package mutex_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// A client may hold thousands of locks and watches the nodes of all of them.
func TestHoldsHaveNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holds = 500
		srv := zktest.Start(t)
		c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(srv.Client("c").DialContext))
		before := runtime.NumGoroutine()
		var all []*recipes.Hold
		for i := range holds {
			all = append(all, acquire(t, newMutex(t, c, fmt.Sprintf("/locks/%d", i))))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Less(t, runtime.NumGoroutine()-before, holds/10)
		require.NoError(t, srv.Delete(all[0].Path()))
		<-all[0].Done()
		require.ErrorIs(t, all[0].Err(), recipes.ErrNodeDeleted, "the watch reports the deletion")
		for _, h := range all[1:] {
			require.NoError(t, h.Err())
		}
		require.NoError(t, c.Close())
		for _, h := range all[1:] {
			require.ErrorIs(t, h.Err(), framework.ErrClosed)
		}
	})
}
