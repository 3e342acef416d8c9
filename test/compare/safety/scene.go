// Package safety lets programs read, think and write under a lock while something fails, and counts what
// goes wrong. The failures are aimed: the driver knows when a program is between its read and its
// write, has the failure happen there, and lets another program go in between, if the lock does.
package safety

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/service"
	"github.com/docent-zk/docent/test/compare/worker"
)

// Row is what became of one kind of lock under one fault.
type Row struct {
	Kind  string
	Fault Fault
	// Lost updates: in a resource that compares nothing, in one that compares tokens, and in the service
	// of the lock. Nil: the lock has no token, or cannot write there.
	Plain, Token, Guard *int
	Double              bool          // two programs acted as holders at a time
	Free                time.Duration // from the fault until the other program had the lock; 0: not before a release
	Kept                bool          // the holder kept the lock, and released it
	Stuck               bool          // the lock did not become free while the driver waited
	Refused             bool          // the resource that compares tokens has refused the later holder
	Reason              string        // why it was not run
	Run                 string        // when the run began that it is of
}

const (
	// patience is how long the driver waits for a lock that has to become free, and for any answer.
	patience = 5 * worker.Lease
	// keeping is how long it waits for one that need not become free.
	keeping = 2*worker.Lease + 2*time.Second
	// starting is for programs that start on a machine that is busy.
	starting = 2 * time.Minute
)

// errLate means that so much time has passed that the fault may not have its effect.
var errLate = errors.New("the machine was too slow")

// late joins errLate to the error of a program that did not do what it was told, or not in time.
func late(err error) error {
	if errors.Is(err, worker.ErrFailed) || errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(errLate, err)
	}
	return err
}

// program is a worker with what it has read.
type program struct {
	*worker.Worker
	token   int64
	read    [3]int  // of each register
	allowed [3]bool // its reads were
}

// scene is one kind of lock under one fault.
type scene struct {
	*Runner
	kind    peer.Kind
	fault   Fault
	service service.Service
	lock    string

	holder, other, between *program
	registers              [3]*register // plain, token, guard
	since                  time.Time    // when the holder had the lock
	struck                 time.Time
	row                    Row
	err                    error
}

const (
	plain = iota
	tokens
	guard
)

func (r *Runner) newScene(k peer.Kind, f Fault, s service.Service) *scene {
	return &scene{Runner: r, kind: k, fault: f, service: s, row: Row{Kind: k.Name, Fault: f},
		registers: [3]*register{{}, {fence: &fence.Register{}}, {}},
		lock:      fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(k.Name, ".", "-"), f, r.number.Add(1))}
}

// close ends all programs.
func (s *scene) close() {
	for _, p := range []*program{s.holder, s.other, s.between} {
		if p != nil {
			p.Close()
		}
	}
}

// begin starts the programs. Each acquires and releases the lock, so that later requests are those of
// the lock only.
func (s *scene) begin(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	if s.holder, err = s.program(ctx, 0); err != nil {
		return err
	}
	ahead := time.Duration(0)
	if s.fault == ClockAhead {
		ahead = service.Jump
	}
	if s.other, err = s.program(ctx, ahead); err != nil {
		return err
	}
	if s.fault == WaiterDies {
		s.between, err = s.program(ctx, 0)
	}
	return err
}

func (s *scene) program(ctx context.Context, ahead time.Duration) (*program, error) {
	w, err := s.launcher.Start(ctx, s.kind, s.service, worker.Options{Lock: s.lock, Ahead: ahead})
	if err != nil {
		return nil, late(err)
	}
	p := &program{Worker: w}
	if _, err := p.Ask(ctx, "acquire", "held"); err != nil {
		p.Close()
		return nil, late(err)
	}
	if _, err := p.Ask(ctx, "release", "released"); err != nil {
		p.Close()
		return nil, late(err)
	}
	return p, nil
}

// hold has the holder acquire the lock and read.
func (s *scene) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.kind.Service == peer.Masters {
		s.takeMajority()
	}
	if s.fault == KillAcquire {
		return nil
	}
	if err := s.holder.Tell("acquire"); err != nil {
		return err
	}
	if err := s.acquired(ctx, s.holder); err != nil {
		return late(err)
	}
	s.since = time.Now()
	if s.fault == PauseLate {
		words, err := s.holder.Ask(ctx, "look", "valid", "lost", "unknown")
		if err == nil && words[0] == string(peer.Lost) {
			err = fmt.Errorf("%w: the lease was over before the fault", errLate)
		}
		return late(err)
	}
	return nil
}

// takeMajority leaves the holder with three masters of five, as when two are down at that time.
func (s *scene) takeMajority() {
	if s.fault == Wipe || s.fault == ServerClock {
		for _, l := range s.holder.Links()[service.Masters/2+1:] {
			l.Cut(true)
		}
	}
}

// acquired waits until a program that was told to acquire the lock has it, and reads the registers. A
// program whose library gives up acquires again.
func (s *scene) acquired(ctx context.Context, p *program) error {
	for {
		words, err := p.Hear(ctx, "held")
		if errors.Is(err, worker.ErrFailed) {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return err
			}
			if err := p.Tell("acquire"); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		p.token, err = strconv.ParseInt(words[1], 10, 64)
		for i, r := range s.registers {
			p.read[i], p.allowed[i] = r.read(p.token)
		}
		return err
	}
}

// strike has the fault of a program happen. Those of the service happen elsewhere.
func (s *scene) strike(ctx context.Context) (err error) {
	if s.since != (time.Time{}) && time.Since(s.since) > worker.Lease/2 {
		return fmt.Errorf("%w: the lease was nearly over before the fault", errLate)
	}
	s.struck = time.Now()
	switch s.fault {
	case Pause, PauseLate:
		err = s.holder.Pause()
	case Kill:
		s.holder.Kill()
	case KillAcquire:
		err = s.killInAcquire()
	case Partition:
		s.holder.Cut(true)
	case WaiterDies:
		err = s.killBetween(ctx)
	}
	return err
}

// killInAcquire lets requests through, but no answer, and kills the program.
func (s *scene) killInAcquire() error {
	sent := func() (sum int64) {
		for _, l := range s.holder.Links() {
			sum += l.Sent()
		}
		return sum
	}
	before := sent()
	for _, l := range s.holder.Links() {
		l.HoldReplies()
	}
	if err := s.holder.Tell("acquire"); err != nil {
		return err
	}
	// A short request, such as a ping, is not the acquire.
	for end := time.Now().Add(patience); sent()-before < shortest && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.holder.Kill()
	s.struck = time.Now()
	return nil
}

// shortest is the length of the shortest request that acquires a lock, in bytes.
const shortest = 20

// killBetween has two programs wait for the lock, and kills the one that came first.
func (s *scene) killBetween(ctx context.Context) error {
	for _, p := range []*program{s.between, s.other} {
		if err := p.Tell("acquire"); err != nil {
			return err
		}
		if err := s.waits(ctx, p); err != nil {
			return err
		}
	}
	s.between.Kill()
	return nil
}

// waits returns when a program that was told to acquire the lock waits. Locks that are built by hand
// say so. For others it is when they have sent something, and then nothing for a while.
func (s *scene) waits(ctx context.Context, p *program) error {
	if s.kind.Own && s.kind.Service == peer.ZooKeeper {
		_, err := p.Hear(ctx, "waiting")
		return err
	}
	time.Sleep(settling)
	return ctx.Err()
}

// settling is longer than a program needs until it waits, on a machine that is not overloaded. If it
// is not, the fault happens too early, and does less.
const settling = 500 * time.Millisecond

// observe has the other program acquire the lock, read and write, and then the holder go on.
func (s *scene) observe(ctx context.Context) error {
	bound := s.bound()
	if s.fault != WaiterDies {
		if err := s.other.Tell("acquire"); err != nil {
			return err
		}
	}
	if err := s.within(ctx, bound); err == nil {
		s.row.Free = time.Since(s.struck)
		return s.both(ctx)
	} else if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, worker.ErrFailed) {
		return err
	} else if Theory(s.kind, s.fault).Plain == Must {
		return fmt.Errorf("%w: the other program does not have the lock in time: %w", errLate, err)
	}
	s.heal()
	if !s.holder.Dead() {
		if s.goesOn(ctx) {
			s.row.Kept = true
			s.write(ctx, s.holder)
		}
		_, _ = s.ask(ctx, s.holder, "release", "released") // a lock that was lost cannot be released
	}
	if err := s.within(ctx, patience); err != nil {
		s.row.Stuck = true
		return ctx.Err()
	}
	s.write(ctx, s.other)
	s.row.Refused = s.kind.Token && !s.other.allowed[tokens]
	return nil
}

// bound returns how long the other program waits until the holder goes on.
func (s *scene) bound() time.Duration {
	switch {
	case s.fault.frees():
		return patience
	case s.kind.Fixed && s.fault != Overrun:
		return worker.Lease / 4 // the lease must not be over by then
	}
	return keeping
}

// within waits for the lock of the other program.
func (s *scene) within(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.acquired(ctx, s.other)
}

// both goes on when the other program has the lock, and the holder has not released it.
func (s *scene) both(ctx context.Context) error {
	s.row.Refused = s.kind.Token && !s.other.allowed[tokens]
	if s.holder.Dead() {
		s.write(ctx, s.other)
		return nil
	}
	if s.fault == Pause || s.fault == PauseLate {
		if err := s.holder.Resume(); err != nil {
			return err
		}
	}
	s.row.Double = s.goesOn(ctx)
	s.write(ctx, s.other)
	s.heal()
	if s.row.Double {
		s.write(ctx, s.holder)
	}
	return nil
}

// goesOn reports whether the holder takes the lock for its own, after the fault.
func (s *scene) goesOn(ctx context.Context) bool {
	if s.fault == PauseLate {
		return true // it has looked
	}
	words, err := s.ask(ctx, s.holder, "look", "valid", "lost", "unknown")
	return err == nil && words[0] != string(peer.Lost)
}

func (s *scene) ask(ctx context.Context, p *program, line string, want ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Ask(ctx, line, want...)
}

// heal ends a fault that lasts.
func (s *scene) heal() {
	if !s.holder.Dead() {
		_ = s.holder.Resume()
		s.holder.Cut(false)
	}
}

// write writes what a program has read to all registers.
func (s *scene) write(ctx context.Context, p *program) {
	for _, i := range []int{plain, tokens} {
		if p.allowed[i] {
			s.registers[i].write(p.token, p.read[i])
		}
	}
	if words, err := s.ask(ctx, p, "write", "written", "refused", "none"); err == nil && words[0] == "written" {
		s.registers[guard].write(0, p.read[guard])
	}
}

// result returns the row.
func (s *scene) result() Row {
	s.row.Plain = &s.registers[plain].lost
	if s.kind.Token {
		s.row.Token = &s.registers[tokens].lost
	}
	if s.kind.Guard {
		s.row.Guard = &s.registers[guard].lost
	}
	return s.row
}
