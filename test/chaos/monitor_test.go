package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
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
		if err := errors.Join(s.gather(), s.checkTurns(false)); err != nil {
			s.wrong = err
			s.endFaults()
			return
		}
	}
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
	return err
}

func (s *siege) hear(w *siegeProcess, t turn) error {
	switch t.Kind {
	case kindError:
		return fmt.Errorf("an error that no fault explains: %+v", t)
	case kindResting:
		return errorUnless(t.Lost == "", "a worker has no session after the faults: %+v", t)
	case kindKilled:
		s.counter.killed(w.number)
		return nil
	case kindAdd:
		s.total.countAddition(t)
		if err := s.counter.add(w.number, t); err != nil {
			return fmt.Errorf("%s, worker %d: %+v: %w", t.Lock, w.number, t, err)
		}
		return nil
	}
	s.total.countGrant(t)
	s.turns[t.Lock] = append(s.turns[t.Lock], t)
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
func (s *siege) checkCounter(ctx context.Context) error {
	data, _, err := s.fresh.Get(ctx, s.counterPath)
	if err != nil {
		return fmt.Errorf("%s: %w", s.counterPath, err)
	}
	left, err := decodeSum(data)
	if err != nil {
		return err
	}
	if err := s.counter.end(left); err != nil {
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
	s.grants[t.Kind]++
	if t.Lost != "" {
		s.lost++
	}
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
