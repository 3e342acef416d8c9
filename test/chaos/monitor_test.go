package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// monitor checks what workers tell while faults go on, until over is closed. It ends the round when
// something is wrong.
func (s *siege) monitor(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Second): // how often it looks
		}
		_ = s.readTokens(time.Second) // not while there is no quorum
		if err := errors.Join(s.gather(), s.checkTurns(false), s.lives(), s.ledgers.losses()); err != nil {
			s.note("wrong: %v", err)
			s.wrong = err
			s.endFaults()
			return
		}
	}
}

// lives checks that no worker has ended by itself.
func (s *siege) lives() (err error) {
	for _, w := range s.all() {
		err = errors.Join(err, w.lives())
	}
	return err
}

// gather takes what the workers have said since the last call, and counts it.
func (s *siege) gather() (err error) {
	for _, w := range s.workers {
		turns := w.collect()
		s.record.keep(turns...)
		for _, t := range turns {
			err = errors.Join(err, s.hear(w, t))
		}
	}
	for _, w := range s.keepers {
		err = errors.Join(err, w.wrong())
	}
	return err
}

func (s *siege) hear(w *siegeProcess, t turn) error {
	switch t.Kind {
	case kindError:
		return fmt.Errorf("an error that no fault explains: %+v", t)
	case kindResting:
		return errorUnless(t.Lost == "", "a worker has no session after the faults: %+v", t)
	case kindBegins:
		s.followers.writes.add(t.Writes...)
		return nil
	case kindKilled:
		s.counter.killed(w.number)
		return nil
	case kindAdd:
		s.total.countAddition(t)
		s.granted.add(t)
		if err := s.counter.add(w.number, t); err != nil {
			return fmt.Errorf("%s, worker %d: %+v: %w", t.Lock, w.number, t, err)
		}
		return nil
	}
	s.total.countGrant(t)
	s.granted.add(t)
	s.turns[t.Lock] = append(s.turns[t.Lock], t)
	return nil
}

// readTokens reads what holders have written, for a while at most.
func (s *siege) readTokens(bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := s.fresh.Sync(ctx, "/"); err != nil {
		return err
	}
	for lock, h := range s.histories {
		data, stat, err := s.fresh.Get(ctx, tokenPath(lock))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			continue // no hold has written yet
		}
		token, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", tokenPath(lock), err)
		}
		if h.read(token, stat.Mzxid) {
			s.total.set(func() { s.total.read++ })
		}
	}
	return nil
}

// checkTurns checks all turns of the round so far. At its end the next round continues from there.
func (s *siege) checkTurns(end bool) error {
	var errs []error
	if err := s.counter.check(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", s.counterPath, err))
	}
	limits, complete := s.limit.known()
	for lock, h := range s.histories {
		if lock == siegeMoving {
			if h.limits = limits; !complete {
				continue // until it is known when the limit changes
			}
		}
		if err := h.check(s.turns[lock]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", lock, err))
		}
		if end {
			h.advance(s.turns[lock])
		}
	}
	if end {
		s.total.set(func() { s.total.limits += len(limits) })
		s.limit.forget()
	}
	return errors.Join(errs...)
}

// checkCounter compares the counter with what was added, when nothing adds any more.
func (s *siege) checkCounter() error {
	var data []byte
	var err error
	s.eventually(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), recoveryBound)
		defer cancel()
		if err = s.fresh.Sync(ctx, s.counterPath); err == nil {
			data, _, err = s.fresh.Get(ctx, s.counterPath)
		}
		return err == nil
	}, func() string { return fmt.Sprintf("%s cannot be read: %v", s.counterPath, err) })
	left, err := decodeSum(data)
	if err == nil {
		err = s.counter.end(left)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.counterPath, err)
	}
	return nil
}

func (s *totals) countGrant(t turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Kind == kindMulti && t.Lock != siegeMutex { // counted with its first lock
		return
	}
	if t.Lost != "" {
		s.lost[t.Kind]++
	}
	if t.To < t.From { // it had ended when it was asked the first time
		return
	}
	s.grants[t.Kind]++
	if t.Wrote != 0 {
		s.writes++
	}
}

func (s *totals) countAddition(t turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.Lost == "":
		s.added++
	case t.Outcome == 0:
		s.unknown++
	}
}

func TestMonitorEndsTheRoundWhenSomethingIsWrong(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // of the drawings
	held := func(lock string, token, from, to int64) turn {
		return turn{Kind: kindMutex, Lock: lock, Token: token, From: from, To: to}
	}
	added := func(sum int64) turn {
		return turn{Kind: kindAdd, Lock: "/counter", Token: sum, Outcome: framework.Applied}
	}
	for name, example := range map[string]struct {
		turns []turn
		want  string
	}{
		"two holds":     {[]turn{held(siegeMutex, 1, 1, 5), held(siegeMutex, 2, 4, 9)}, "two valid holds"},
		"counted twice": {[]turn{added(1), added(3)}, "counts twice"},
		"an error":      {[]turn{{Kind: kindError, Lost: "something"}}, "no fault explains"},
		"no session":    {[]turn{{Kind: kindResting, Lost: "lost"}}, "no session"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &siege{
				t: t, record: newRecorder(t), total: newTotals(),
				fresh: testzk.Connected(t, zktest.Start(t).Addr()), limit: &movingLimit{}, counter: newCounterHistory(),
				histories: map[string]*lockHistory{siegeMutex: newLockHistory(), siegeBusy: newLockHistory()},
				turns:     map[string][]turn{}, granted: newGrants(nil), cancelled: make(chan struct{}),
			}
			s.endFaults = func() { close(s.cancelled) }
			worker := &process{turns: []turn{held(siegeBusy, 1, 1, 9), {Kind: kindResting}}}
			s.workers = []*siegeProcess{{process: worker}}
			require.NoError(t, errors.Join(s.gather(), s.checkTurns(false)))

			worker.turns = example.turns
			s.monitor(nil)
			require.ErrorContains(t, s.wrong, example.want)
			<-s.cancelled
		})
	}
}
