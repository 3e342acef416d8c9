package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/history"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/zktest"
)

// maxPermits is the largest limit of siegeMoving.
const maxPermits = 4

// movingLimit changes the limit of permits, in a node that has not been written since it was created.
// Nothing else writes it.
type movingLimit struct {
	client  *framework.Client
	version int32 // of the node

	mu      sync.Mutex
	pending bool // a change is under way
	changes []history.Op
}

func encodeLimit(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// run changes the limit until over is closed. It returns when the last change is known.
func (m *movingLimit) run(ctx context.Context, random *rand.Rand, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		case <-time.After(below(random, 2*time.Second)): // the workload
			if err := m.move(ctx, 1+random.IntN(maxPermits)); err != nil {
				return err
			}
		}
	}
}

// move changes the limit. It repeats the change until it is known to be applied: the version of the
// node tells.
func (m *movingLimit) move(ctx context.Context, limit int) error {
	called := now()
	m.set(func() { m.pending = true })
	for {
		zxid, err := m.apply(ctx, limit)
		if err == nil {
			m.version++
			change := history.Op{Call: called, Return: now(), What: history.Limit{Zxid: zxid, Permits: limit}}
			m.set(func() { m.pending, m.changes = false, append(m.changes, change) })
			return nil
		}
		if !isExpected(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// apply makes one attempt, and returns the transaction of this change.
func (m *movingLimit) apply(ctx context.Context, limit int) (zxid int64, err error) {
	stat, err := m.client.Set(ctx, siegeLimit, encodeLimit(limit), m.version)
	if errors.Is(err, zk.ErrBadVersion) { // an earlier attempt was applied
		if err := m.client.Sync(ctx, siegeLimit); err != nil {
			return 0, err
		}
		_, stat, err = m.client.Get(ctx, siegeLimit)
	}
	if err != nil {
		return 0, err
	}
	return stat.Mzxid, nil
}

func (m *movingLimit) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// known returns all changes of this round. It reports false while one is under way.
func (m *movingLimit) known() (changes []history.Op, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, !m.pending
}

// forget begins a new round.
func (m *movingLimit) forget() { m.set(func() { m.changes = nil }) }

func TestMovingLimitIsThatOfTheSemaphore(t *testing.T) {
	c := testzk.Connected(t, zktest.Start(t).Addr())
	created, err := c.CreateResult(testzk.Context(t), siegeLimit, encodeLimit(permits))
	require.NoError(t, err)
	m := &movingLimit{client: c}
	require.NoError(t, m.move(testzk.Context(t), 3))
	require.NoError(t, m.move(testzk.Context(t), 1))
	changes, complete := m.known()
	require.True(t, complete)
	require.Len(t, changes, 2)
	require.Greater(t, changes[0].What.(history.Limit).Zxid, created.Czxid)
	require.Greater(t, changes[1].What.(history.Limit).Zxid, changes[0].What.(history.Limit).Zxid)
	s, err := semaphore.New(c, siegeMoving, permits, semaphore.WithSharedLimit(siegeLimit))
	require.NoError(t, err)
	limit, err := s.Limit(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, 1, limit)

	m.version-- // as if the answer to the last change had been lost
	require.NoError(t, m.move(testzk.Context(t), 1))
	again, _ := m.known()
	require.Equal(t, changes[1].What, again[2].What)
	m.forget()
	changes, _ = m.known()
	require.Empty(t, changes)
}

func TestLockHistoryFindsPermitsAboveAMovedLimit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawings
	permit := func(token, from, to int64) turn { return turn{Kind: kindPermit, Token: token, From: from, To: to} }
	limit := func(zxid int64, permits int) history.Op {
		return history.Op{Call: zxid, Return: zxid, What: history.Limit{Zxid: zxid, Permits: permits}}
	}
	three := []turn{permit(11, 11, 40), permit(12, 12, 40), permit(20, 20, 40)}
	for name, example := range map[string]struct {
		limits []history.Op
		turns  []turn
		want   string // empty: nothing is wrong
	}{
		"not moved":        {nil, three, "3 valid permits"},
		"raised before":    {[]history.Op{limit(15, 3)}, three, ""},
		"raised after":     {[]history.Op{limit(30, 3)}, three, "3 valid permits"},
		"lowered later":    {[]history.Op{limit(15, 3), limit(21, 1)}, three, ""},
		"lowered before":   {[]history.Op{limit(5, 1)}, three[:2], "2 valid permits"},
		"raised and lower": {[]history.Op{limit(15, 3), limit(19, 2)}, three, "3 valid permits"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLockHistory()
			l.limits = example.limits
			err := l.add(example.turns)
			if example.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, example.want)
		})
	}
	l := newLockHistory()
	l.limits = []history.Op{limit(5, 1)}
	require.NoError(t, l.add(nil))
	require.ErrorContains(t, l.add(three[:2]), "2 valid permits", "the limit of the last round counts")
}
