package multilock_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// counting is a connection on which lists that are asked for are counted, whether the server has
// read them or not.
type counting struct {
	net.Conn
	lists *atomic.Int64
	rest  []byte // of a request that has not been written to its end
}

func (c *counting) Write(b []byte) (int, error) {
	const getChildren2, opAt = 12, 8 // behind the length and the xid
	c.rest = append(c.rest, b...)
	for len(c.rest) >= opAt+4 {
		length := 4 + int(binary.BigEndian.Uint32(c.rest))
		if len(c.rest) < length {
			break
		}
		if binary.BigEndian.Uint32(c.rest[opAt:]) == getChildren2 {
			c.lists.Add(1)
		}
		c.rest = c.rest[length:]
	}
	return c.Conn.Write(b)
}

// A multi-lock of many locks has 64 lists under way at most, so that their answers do not keep back
// those to heartbeats, and asks for none any more once nothing waits for it.
func TestListsOfManyLocksAreAskedForAFewAtATime(t *testing.T) {
	const locks, most = 200, 64
	for _, givesUp := range []bool{false, true} {
		t.Run(fmt.Sprintf("givesUp=%v", givesUp), func(t *testing.T) {
			sim.Once(t, 1, func(t *testing.T, srv *zktest.Server, _ *rand.Rand) {
				var lists atomic.Int64
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := srv.Client("c").DialContext(ctx, network, address)
					return &counting{Conn: conn, lists: &lists}, err
				}
				c := testzk.Connected(t, srv.MemAddr(), framework.WithDialer(dial))
				var paths []string
				for i := range locks {
					paths = append(paths, fmt.Sprintf("/locks/%03d", i))
				}
				m := newMulti(t, c, paths)
				require.NoError(t, acquire(t, m).Release()) // the number 0, behind which nothing is listed
				lists.Store(0)
				held := srv.On(zktest.Match{Op: zktest.OpGetChildren2}, zktest.Hold())
				attempt := start(t, m)
				time.Sleep(500 * time.Millisecond)
				require.EqualValues(t, most, lists.Load(), "under way at a time")
				if givesUp {
					attempt.cancel()
					_, err := attempt.wait()
					require.ErrorIs(t, err, context.Canceled)
					require.LessOrEqual(t, lists.Load(), int64(most+1), "nothing waits for more, but one may be about to be asked for")
					held.Release()
				} else {
					held.Release()
					hold := attempt.won(t)
					require.EqualValues(t, locks, lists.Load(), "one for each lock")
					require.NoError(t, hold.Release())
				}
				time.Sleep(time.Second)
				require.NotContains(t, srv.Tree(), "ephemeral")
			})
		})
	}
}
