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
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/sim"
)

// counting is a connection that counts the requested lists, whether or not the server has read the
// requests.
type counting struct {
	net.Conn
	lists *atomic.Int64
	rest  []byte // of a request that is not yet written completely
}

func (c *counting) Write(b []byte) (int, error) {
	const getChildren2, opAt = 12, 8 // after the length and the xid
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

// A multi-lock of many locks requests at most 64 lists at a time, so that their replies do not
// delay those of heartbeats. It requests no more when its acquire has ended.
func TestListsOfManyLocksAreRequestedAFewAtATime(t *testing.T) {
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
				require.NoError(t, acquire(t, m).Release()) // uses the sequence number 0, which needs no list
				lists.Store(0)
				held := srv.On(fault.Match{Op: fault.OpGetChildren2}, fault.Hold())
				attempt := testlock.Start(t, m.Acquire)
				time.Sleep(500 * time.Millisecond)
				require.EqualValues(t, most, lists.Load(), "under way at a time")
				if givesUp {
					attempt.Cancel()
					_, err := attempt.Wait()
					require.ErrorIs(t, err, context.Canceled)
					require.LessOrEqual(t, lists.Load(), int64(most+1),
						"one more list at most after the acquire has ended")
					held.Release()
				} else {
					held.Release()
					hold := attempt.Won(t)
					require.EqualValues(t, locks, lists.Load(), "one for each lock")
					require.NoError(t, hold.Release())
				}
				time.Sleep(time.Second)
				require.NotContains(t, srv.Tree(), "ephemeral")
			})
		})
	}
}
