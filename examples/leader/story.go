package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/examples/internal/crew"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// candidates is how many there are.
const candidates = 3

// story is one run: it directs the candidates.
type story struct {
	say     *program.Narrator
	fail    context.CancelCauseFunc // ends the story
	client  *framework.Client
	path    string // of the election
	witness *witness
	crew    *crew.Crew[job]
	agreed  time.Duration // the session timeout that the servers granted
	blows   chan blow     // what is to happen to the leader
}

// blow is what happens to a leader in the middle of a deed.
type blow struct {
	deal   func(*crew.Process) error
	answer answer          // that it gets to the deed
	hold   <-chan struct{} // the answer waits until this is closed
	dealt  chan struck
}

// struck is whom a blow was dealt to.
type struck struct {
	visit
	at  time.Time
	err error
}

// tell is the whole story. Nothing that it started is left when it returns.
func tell(ctx context.Context, connect string, session time.Duration, say *program.Narrator) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s := &story{
		say: say, fail: fail, client: client, witness: newWitness(), blows: make(chan blow),
		path: "/docent-examples/leader-" + rand.Text(), // random only because nobody else is to take part in this story
	}
	granted, err := client.Session(ctx)
	if err != nil {
		return err
	}
	s.agreed = granted.Timeout()

	listener, url, err := crew.Listen()
	if err != nil {
		return err
	}
	defer crew.Serve(listener, func(step string, v visit) (answer, error) { return s.handle(ctx, step, v) })()
	s.crew = crew.New(func(number int) job { return job{number, connect, s.path, session, url} }, fail)
	defer func() { err = errors.Join(err, s.crew.Dismiss()) }()

	observing := make(chan struct{})
	go func() {
		defer close(observing)
		fail(s.observe(ctx))
	}()
	defer func() { fail(nil); <-observing }()
	return s.scenes(ctx)
}

// observe is how those see who leads who do not stand.
func (s *story) observe(ctx context.Context) (last error) {
	for who, err := range leader.Observe(ctx, s.client, s.path) {
		switch {
		case err != nil:
			s.say.Line("      observed: nobody knows who leads: %v", err)
		case !who.Leader:
			s.say.Line("      observed: nobody leads")
		default:
			s.say.Line("      observed: %s leads (token %d)", who.ID, who.Token)
		}
		s.witness.observe(who.Token)
		last = err
	}
	return errors.Join(errors.New("the observer has stopped"), last) // if ctx has ended it does not matter
}

func (s *story) scenes(ctx context.Context) error {
	s.say.Text("%d candidates, each a process of its own. The session timeout is %v.\n", candidates, s.agreed)
	for number := 1; number <= candidates; number++ {
		if err := s.enter(ctx, number, number); err != nil {
			return err
		}
	}
	for _, scene := range []func(context.Context) error{s.resigns, s.isKilled, s.isPaused} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return s.conclude()
}

// enter starts a candidate, and waits until so many are in line, so that the story has an order.
func (s *story) enter(ctx context.Context, number, line int) error {
	if err := s.crew.Hire(number); err != nil {
		return err
	}
	s.say.Line("Process %d is %s.", s.crew.Member(number).PID(), name(number))
	return s.inLine(ctx, line)
}

// inLine waits until so many candidates stand.
func (s *story) inLine(ctx context.Context, want int) error {
	for {
		line, err := leader.Participants(ctx, s.client, s.path)
		if err != nil || len(line) >= want {
			return err
		}
		if rest(ctx); ctx.Err() != nil {
			return fmt.Errorf("%d of %d candidates in line: %w", len(line), want, context.Cause(ctx))
		}
	}
}

// handle is the witness with an audience: if something is to happen to the leader, it happens here.
func (s *story) handle(ctx context.Context, step string, v visit) (answer, error) {
	err := s.witness.apply(step, v)
	if err != nil && !errors.Is(err, fence.ErrStale) {
		s.fail(err)
	}
	if err != nil || step != stepAct {
		return answer{}, err
	}
	select {
	case b := <-s.blows:
		err := b.deal(s.crew.Member(v.Candidate))
		b.dealt <- struck{v, time.Now(), err}
		select {
		case <-b.hold:
		case <-ctx.Done():
		}
		return b.answer, nil
	default:
		return answer{}, nil
	}
}

// strike waits until all stand and somebody leads, and deals a blow to the leader.
func (s *story) strike(ctx context.Context, b blow) (struck, error) {
	if err := s.inLine(ctx, candidates); err != nil {
		return struck{}, err
	}
	if _, err := s.witness.next(ctx, 0); err != nil {
		return struck{}, err
	}
	b.dealt = make(chan struck, 1)
	select {
	case s.blows <- b:
	case <-ctx.Done():
		return struck{}, context.Cause(ctx)
	}
	v := <-b.dealt
	return v, v.err
}

var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// follows waits for the leader after v.
func (s *story) follows(ctx context.Context, v struck) error {
	next, err := s.witness.next(ctx, v.Token)
	if err != nil {
		return err
	}
	s.say.Line("... and %.2f s later %s acts as the leader.", time.Since(v.at).Seconds(), next)
	return nil
}

// resigns: a leader who resigns makes way at once.
func (s *story) resigns(ctx context.Context) error {
	v, err := s.strike(ctx, blow{hold: atOnce, answer: answer{Resign: true}, deal: func(*crew.Process) error { return nil }})
	if err != nil {
		return err
	}
	s.say.Line("RESIGNS: %s returns from lead; it stands again, at the end of the line ...", v)
	return s.follows(ctx, v)
}

// isKilled: a leader who dies makes way when the servers have heard nothing from it for the session timeout.
func (s *story) isKilled(ctx context.Context) error {
	v, err := s.strike(ctx, blow{hold: atOnce, deal: func(p *crew.Process) error { p.Kill(); return nil }})
	if err != nil {
		return err
	}
	s.say.Line("KILLED: %s is dead (kill -9). The servers wait for the session timeout, %v ...", v, s.agreed)
	if err := s.follows(ctx, v); err != nil {
		return err
	}
	return s.enter(ctx, v.Candidate, candidates)
}

// isPaused: to the servers one who is paused looks dead. When it goes on, it must not go on as the leader.
func (s *story) isPaused(ctx context.Context) error {
	if !crew.CanPause {
		s.say.Line("(On this system no process can be paused: that part is left out.)")
		return nil
	}
	resumed := make(chan struct{})
	v, err := s.strike(ctx, blow{hold: resumed, deal: (*crew.Process).Pause})
	if err != nil {
		return err
	}
	s.say.Line("PAUSED: %s stands still (kill -STOP), in the middle of what it does, as if its machine were suspended ...", v)
	err = s.follows(ctx, v)
	// It is let go on in any case. Only then it gets the answer that it waits for.
	err = errors.Join(err, s.crew.Member(v.Candidate).Resume())
	close(resumed)
	if err != nil {
		return err
	}
	s.say.Line("RESUMED: %s goes on (kill -CONT). It does not know that another leads, and asks its term before it acts ...", v)
	lost, err := s.witness.hasLost(ctx, v.Token)
	if err != nil {
		return err
	}
	s.say.Line("... and finds out, without having done anything: %s", lost.Why)
	return s.inLine(ctx, candidates) // it stands again
}

func (s *story) conclude() error {
	terms, err := s.witness.conclude()
	if err != nil {
		return err
	}
	s.say.Text("\nThe election did what it promises: %d terms, never two leaders at once, and each term had a larger token, from %d to %d.",
		len(terms), terms[0].Token, terms[len(terms)-1].Token)
	return nil
}
