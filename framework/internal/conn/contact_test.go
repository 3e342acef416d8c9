package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at returns a moment for tests.
func at(d time.Duration) Stamp { return Stamp{at: time.Unix(1e9, 0).Add(d)} }

type hasContact interface {
	Contact() (proven Contact, claimed []Contact)
}

func proven(c hasContact) Stamp {
	proven, _ := c.Contact()
	return proven.At
}

// contactAfter returns a contact after the given exchanges, each sent and answered at so many
// seconds. The session timeout is 24 s: a heartbeat is sent each 4 s, and a report arrives within 3
// s.
func contactAfter(answered ...[2]time.Duration) *contact {
	c := &contact{}
	c.setTimeouts(24*time.Second, 24*time.Second)
	c.restart(at(0))
	for _, a := range answered {
		c.add(at(a[0]*time.Second), at(a[1]*time.Second))
	}
	return c
}

func (c *contact) proven() time.Duration { return c.countsFrom.Since(at(0)) / time.Second }

func TestContactFollowsAnEvenStreamOfReplies(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4}, [2]time.Duration{8, 8}, [2]time.Duration{12, 13})
	require.EqualValues(t, 12, c.proven())
	require.True(t, c.even)
}

func TestContactIsAtMostOneHeartbeatAfterTheLastReportBeforeAGap(t *testing.T) {
	for name, row := range map[string]struct {
		answered [][2]time.Duration
		proven   time.Duration
		even     bool
	}{
		"the process was paused":    {[][2]time.Duration{{4, 4}, {15, 15}}, 8, false},
		"paused, then early reply":  {[][2]time.Duration{{4, 4}, {15, 15}, {17, 17}}, 8, false},
		"paused, then later reply":  {[][2]time.Duration{{4, 4}, {15, 15}, {18, 18}}, 18, true},
		"the network stood still":   {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {15, 15}}, 8, false},
		"stood still, early reply":  {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {16, 16}}, 8, false},
		"stood still, timely reply": {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {16, 16}, {19, 19}}, 19, true},
		"all replies late":          {[][2]time.Duration{{4, 6}, {8, 10}, {12, 14}, {16, 18}, {20, 22}}, 16, true},
		"all replies later":         {[][2]time.Duration{{4, 10}, {8, 14}, {12, 18}, {16, 22}, {20, 26}}, 12, false},
	} {
		c := contactAfter(row.answered...)
		require.Equal(t, row.proven, c.proven(), name)
		require.Equal(t, row.even, c.even, name)
	}
}

func TestContactNeverGoesBack(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4}, [2]time.Duration{8, 8}, [2]time.Duration{6, 9}, [2]time.Duration{1, 9})
	require.EqualValues(t, 8, c.proven())
	c.add(at(10*time.Second), at(10*time.Second))
	require.EqualValues(t, 8, c.proven(), "the request of 8 s may not have been reported before that of 10 s")
}

func TestConfirmedConnectionCountsFromItsConnectRequest(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4}, [2]time.Duration{15, 15})
	require.False(t, c.even)
	c.restart(at(15 * time.Second))
	require.EqualValues(t, 15, c.proven())
	require.True(t, c.even)
	c.add(at(16*time.Second), at(16*time.Second))
	require.EqualValues(t, 16, c.proven())
}

func TestUnconfirmedConnectionCountsFromTheNextReply(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4})
	c.reconnect(at(15 * time.Second))
	require.EqualValues(t, 4, c.proven())
	c.add(at(16*time.Second), at(16*time.Second))
	require.EqualValues(t, 16, c.proven())
}

func TestShortestTimeoutOfAServerNeedsRepliesFurtherApart(t *testing.T) {
	c := &contact{}
	c.setTimeouts(20*time.Second, 24*time.Second)
	c.restart(at(0))
	require.False(t, c.even)
	for s := range time.Duration(12) {
		c.add(at(4*s*time.Second), at(4*s*time.Second))
	}
	require.EqualValues(t, 40, c.proven(), "a report takes up to 8 s, and a heartbeat interval is 4 s")
}

func TestSessionKeepsToItsShortestTimeout(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4})
	for _, granted := range []time.Duration{12, 24, 36} {
		c.setTimeouts(36*time.Second, granted*time.Second)
		c.reconnect(at(5 * time.Second))
		c.add(at(6*time.Second), at(6*time.Second))
		require.Equal(t, 12*time.Second, c.timeout)
		require.Equal(t, 2*time.Second, c.interval)
		require.Equal(t, 1500*time.Millisecond, c.reportDelay)
	}
}

func TestAnyUnconfirmedConnectionMayCount(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4})
	require.Empty(t, c.claimed)
	for i, granted := range []time.Duration{24, 12, 24, 6} {
		c.setTimeouts(24*time.Second, granted*time.Second)
		c.reconnect(at(time.Duration(5+i) * time.Second))
	}
	require.Equal(t, []Contact{
		{at(5 * time.Second), 24 * time.Second}, {at(6 * time.Second), 12 * time.Second},
		{at(8 * time.Second), 6 * time.Second},
	}, c.claimed)
	c.add(at(10*time.Second), at(10*time.Second))
	require.Empty(t, c.claimed)
	require.EqualValues(t, 9, c.proven(), "a heartbeat interval after the connect request")
}

func TestManyRepliesTakeLittleMemory(t *testing.T) {
	c := contactAfter()
	for ms := range time.Duration(60_000) {
		c.add(at(ms*time.Millisecond), at(ms*time.Millisecond))
	}
	require.Equal(t, at(59_999*time.Millisecond), c.countsFrom)
	require.LessOrEqual(t, len(c.answered), 2*samples)
}

func TestSuspensionIsAGap(t *testing.T) {
	c := contactAfter([2]time.Duration{4, 4})
	woken := Stamp{at: at(8 * time.Second).at, suspended: time.Hour}
	c.add(woken, woken)
	require.EqualValues(t, 8, c.proven(), "the reply before is an hour old")
	require.False(t, c.even)
}
