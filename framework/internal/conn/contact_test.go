package conn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is a moment of tests.
func at(d time.Duration) Stamp { return Stamp{at: time.Unix(1e9, 0).Add(d)} }

type prover interface {
	Contact() (proven, claimed Contact)
}

func proven(c prover) Stamp {
	proven, _ := c.Contact()
	return proven.At
}

// heartbeats have a session timeout of 24 s: one each 4 s, and a report has arrived after 3 s.
func heartbeats(answered ...[2]time.Duration) *contact {
	c := &contact{}
	c.counts(24*time.Second, 24*time.Second)
	c.begin(at(0))
	for _, a := range answered {
		c.heard(at(a[0]*time.Second), at(a[1]*time.Second))
	}
	return c
}

func (c *contact) proven() time.Duration { return c.proof.Since(at(0)) / time.Second }

func TestProofFollowsAnswersThatComeInAnEvenStream(t *testing.T) {
	c := heartbeats([2]time.Duration{4, 4}, [2]time.Duration{8, 8}, [2]time.Duration{12, 13})
	require.EqualValues(t, 12, c.proven())
	require.True(t, c.even)
}

func TestProofIsNoMoreThanAHeartbeatAfterTheLastReportBeforeAGap(t *testing.T) {
	for name, row := range map[string]struct {
		answered [][2]time.Duration
		proven   time.Duration
		even     bool
	}{
		"the process was paused":          {[][2]time.Duration{{4, 4}, {15, 15}}, 8, false},
		"and then an answer too soon":     {[][2]time.Duration{{4, 4}, {15, 15}, {17, 17}}, 8, false},
		"and then one after the report":   {[][2]time.Duration{{4, 4}, {15, 15}, {18, 18}}, 18, true},
		"the network stood still":         {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {15, 15}}, 8, false},
		"and then one within the report":  {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {16, 16}}, 8, false},
		"and then one that was on time":   {[][2]time.Duration{{4, 4}, {8, 15}, {12, 15}, {16, 16}, {19, 19}}, 19, true},
		"every answer is late":            {[][2]time.Duration{{4, 6}, {8, 10}, {12, 14}, {16, 18}, {20, 22}}, 16, true},
		"every answer is later than that": {[][2]time.Duration{{4, 10}, {8, 14}, {12, 18}, {16, 22}, {20, 26}}, 12, false},
	} {
		c := heartbeats(row.answered...)
		require.Equal(t, row.proven, c.proven(), name)
		require.Equal(t, row.even, c.even, name)
	}
}

func TestProofNeverGoesBack(t *testing.T) {
	c := heartbeats([2]time.Duration{4, 4}, [2]time.Duration{8, 8}, [2]time.Duration{6, 9}, [2]time.Duration{1, 9})
	require.EqualValues(t, 8, c.proven())
}

func TestAnotherConnectionCountsInFull(t *testing.T) {
	c := heartbeats([2]time.Duration{4, 4})
	c.begin(at(15 * time.Second))
	require.EqualValues(t, 15, c.proven())
	c.heard(at(16*time.Second), at(16*time.Second))
	require.EqualValues(t, 16, c.proven())
}

func TestConnectionThatIsOnlyClaimedCountsWithTheNextAnswer(t *testing.T) {
	c := heartbeats([2]time.Duration{4, 4})
	c.claim(at(15 * time.Second))
	require.EqualValues(t, 4, c.proven())
	c.heard(at(16*time.Second), at(16*time.Second))
	require.EqualValues(t, 16, c.proven())
}

func TestShortestTimeoutOfAServerNeedsAnswersFurtherApart(t *testing.T) {
	c := &contact{}
	c.counts(20*time.Second, 24*time.Second)
	c.begin(at(0))
	for s := range time.Duration(12) {
		c.heard(at(4*s*time.Second), at(4*s*time.Second))
	}
	require.EqualValues(t, 40, c.proven(), "8 s must have passed, and a heartbeat is 4 s")
}

func TestManyAnswersTakeLittleRoom(t *testing.T) {
	c := heartbeats()
	for ms := range time.Duration(60_000) {
		c.heard(at(ms*time.Millisecond), at(ms*time.Millisecond))
	}
	require.Equal(t, at(59_999*time.Millisecond), c.proof)
	require.LessOrEqual(t, len(c.answered), 2*samples)
}

func TestSuspensionIsAGap(t *testing.T) {
	c := heartbeats([2]time.Duration{4, 4})
	woken := Stamp{at: at(8 * time.Second).at, suspended: time.Hour}
	c.heard(woken, woken)
	require.EqualValues(t, 8, c.proven(), "the answer before is an hour old")
	require.False(t, c.even)
}
