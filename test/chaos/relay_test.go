package chaos

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/realzk"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/ensemble"
)

func TestRelayReportsWhetherAFaultHasAnEffect(t *testing.T) {
	t.Parallel()
	r := newNetwork(t).relay(echo(t))
	require.False(t, r.drop(), "there is no connection")
	r.hold()
	require.False(t, r.keepsBack(), "nothing is sent")
	conn := dial(t, r)
	_, err := conn.Write([]byte("x"))
	require.NoError(t, err)
	testzk.Eventually(t, r.keepsBack, "what is sent is not kept back")
	r.release()
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	require.False(t, r.keepsBack())

	require.False(t, r.hasSlowed())
	r.slow(pace{delay: time.Millisecond})
	require.False(t, r.hasSlowed(), "nothing is sent")
	for !r.hasSlowed() { // the reading that has begun before is not slow
		_, err = conn.Write([]byte("x"))
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	r.slow(pace{})
	require.False(t, r.hasSlowed())

	require.True(t, r.refuse())
	require.False(t, r.refuse(), "the connection has ended before")
	r.allow()
	dial(t, r)
	testzk.Eventually(t, r.reset, "the connection is not reset")
}

func dial(t *testing.T, r *relay) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestRelayKnowsTheSessionOfAClient(t *testing.T) {
	t.Parallel()
	servers := newNetwork(t)
	e := ensemble.Start(t, 1)
	r := servers.relay(e.Connect())
	require.Zero(t, r.session())
	c := testzk.Connected(t, r.addr())
	session, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, session.ID(), r.session())
	r.refuse()
	testzk.Eventually(t, func() bool { return r.session() == 0 }, "there is no connection any more")
}

func TestIntroductionGetsAnotherAddress(t *testing.T) {
	message := func(address string) []byte {
		begin := append(make([]byte, 15), 3)
		return append(binary.BigEndian.AppendUint32(begin, uint32(len(address))), address...)
	}
	came := append(message("127.0.0.1:7"), "later"...)
	want := string(message("127.0.0.1:1234")) + "later"
	for _, size := range []int{1, 3, 17, len(came)} {
		i := &introduction{address: func() string { return "127.0.0.1:1234" }}
		got := ""
		for at := 0; at < len(came); at += size {
			got += string(i.replace(came[at:min(at+size, len(came))]))
		}
		require.Equal(t, want, got, "%d bytes at a time", size)
	}
	require.Equal(t, "any", string((&introduction{}).replace([]byte("any"))))
}

// The leader is cut off, and the two others are cut off from each other. So there is no quorum, and
// there are no elections until one of the cuts is over.
func TestPartitionCutsElections(t *testing.T) {
	t.Parallel()
	realzk.Need(t)
	servers := newNetwork(t)
	e := ensemble.Start(t, 3, ensemble.WithTick(200*time.Millisecond), ensemble.WithConfig("syncLimit", "5"),
		ensemble.WithQuorumLink(servers.between), ensemble.WithElectionLink(servers.betweenElections))
	leader, followers := rolesOf(t, e)
	others := servers.pair(followers[0], followers[1])
	for _, relay := range append(others.all(), servers.pair(leader, followers[0]).all()...) {
		relay.hold()
	}
	require.NoError(t, leader.Kill())
	testzk.Eventually(t, func() bool { return keepBack(others.elections) }, "no message of an election is kept back")
	short, cancel := context.WithTimeout(context.Background(), 2*time.Second) // longer than an election takes
	defer cancel()
	_, err := e.Leader(short)
	require.ErrorIs(t, err, context.DeadlineExceeded, "an election goes on beside the relays")
	for _, relay := range others.all() {
		relay.release()
	}
	_, err = e.Leader(testzk.Context(t))
	require.NoError(t, err)
}
