package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/docent-zk/docent/examples/internal/child"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes/leader"
)

// candidates is the number of candidates.
const candidates = 3

// demo is one run of the demonstration.
type demo struct {
	report        *program.Reporter
	fail          context.CancelCauseFunc // ends the demonstration
	client        *framework.Client
	path          string // of the election
	resource      *resource
	children      *child.Group[job]
	agreed        time.Duration     // the session timeout that the servers granted
	interventions chan intervention // what is to happen to the leader during its next request
}

// intervention is what happens to a leader while it waits for the answer to a request.
type intervention struct {
	do     func(*child.Process) error
	answer answer          // what the leader gets as the answer
	until  <-chan struct{} // the answer waits until this is closed
	done   chan result
}

// result says which request an intervention happened to, and when.
type result struct {
	request
	at  time.Time
	err error
}

// runDemo runs the whole demonstration. When it returns, all processes and goroutines that it
// started have ended.
func runDemo(ctx context.Context, connect string, session time.Duration, report *program.Reporter) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client, err := framework.New(connect, framework.WithSessionTimeout(session))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	d := &demo{
		report: report, fail: fail, client: client, resource: newResource(), interventions: make(chan intervention),
		path: "/docent-examples/leader-" + rand.Text(), // random so that no other program takes part in the election
	}
	granted, err := client.Session(ctx)
	if err != nil {
		return err
	}
	d.agreed = granted.Timeout()

	listener, url, err := child.Listen()
	if err != nil {
		return err
	}
	defer child.Serve(listener, func(step string, q request) (answer, error) { return d.handle(ctx, step, q) })()
	d.children = child.NewGroup(func(number int) job { return job{number, connect, d.path, session, url} }, fail)
	defer func() { err = errors.Join(err, d.children.Stop()) }()

	observing := make(chan struct{})
	go func() {
		defer close(observing)
		fail(d.observe(ctx))
	}()
	defer func() { fail(nil); <-observing }()
	return d.run(ctx)
}

// observe shows how a program that is not a candidate follows the election.
func (d *demo) observe(ctx context.Context) (last error) {
	for now, err := range leader.Observe(ctx, d.client, d.path) {
		switch {
		case err != nil:
			d.report.Line("      observed: the leader is unknown: %v", err)
		case !now.Holds:
			d.report.Line("      observed: no leader")
		default:
			d.report.Line("      observed: %s leads (token %d)", now.Data, now.Token)
		}
		d.resource.observe(now.Token)
		last = err
	}
	return errors.Join(errors.New("the observer has stopped"), last) // has no effect if ctx has ended
}

func (d *demo) run(ctx context.Context) error {
	d.report.Text("%d candidates, each a process of its own. The session timeout is %v.\n", candidates, d.agreed)
	for number := 1; number <= candidates; number++ {
		if err := d.start(ctx, number, number); err != nil {
			return err
		}
	}
	for _, part := range []func(context.Context) error{d.resign, d.kill, d.pause} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return d.conclude()
}

// start starts a candidate, and waits until the queue has the given length. So the candidates enter
// the queue in a known order.
func (d *demo) start(ctx context.Context, number, queue int) error {
	if err := d.children.Start(number); err != nil {
		return err
	}
	d.report.Line("Process %d is %s.", d.children.Process(number).PID(), name(number))
	return d.waitQueue(ctx, queue)
}

// waitQueue waits until the queue has at least the given number of candidates.
func (d *demo) waitQueue(ctx context.Context, want int) error {
	election, err := leader.New(d.client, d.path)
	if err != nil {
		return err
	}
	for {
		queue, err := election.Participants(ctx)
		if err != nil || len(queue) >= want {
			return err
		}
		if rest(ctx); ctx.Err() != nil {
			return fmt.Errorf("%d of %d candidates in the queue: %w", len(queue), want, context.Cause(ctx))
		}
	}
}

// handle passes a step to the resource. If an intervention is due, it happens here.
func (d *demo) handle(ctx context.Context, step string, q request) (answer, error) {
	err := d.resource.apply(step, q)
	if err != nil && !errors.Is(err, fence.ErrStale) {
		d.fail(err)
	}
	if err != nil || step != stepAct {
		return answer{}, err
	}
	select {
	case i := <-d.interventions:
		err := i.do(d.children.Process(q.Candidate))
		i.done <- result{q, time.Now(), err}
		select {
		case <-i.until:
		case <-ctx.Done():
		}
		return i.answer, nil
	default:
		return answer{}, nil
	}
}

// intervene waits until all candidates are in the queue and one of them leads. Then it waits for a
// request of the leader, during which i happens.
func (d *demo) intervene(ctx context.Context, i intervention) (result, error) {
	if err := d.waitQueue(ctx, candidates); err != nil {
		return result{}, err
	}
	if _, err := d.resource.waitTerm(ctx, 0); err != nil {
		return result{}, err
	}
	i.done = make(chan result, 1)
	select {
	case d.interventions <- i:
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
	former := <-i.done
	return former, former.err
}

// atOnce is for answers that do not wait.
var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// waitNext waits for the leader after the former one, and reports how long that took.
func (d *demo) waitNext(ctx context.Context, former result) error {
	next, err := d.resource.waitTerm(ctx, former.Token)
	if err != nil {
		return err
	}
	d.report.Line("... and %.2f s later %s acts as the leader.", time.Since(former.at).Seconds(), next)
	return nil
}

// resign asks the leader to resign. The next candidate leads at once.
func (d *demo) resign(ctx context.Context) error {
	nothing := func(*child.Process) error { return nil }
	former, err := d.intervene(ctx, intervention{until: atOnce, answer: answer{Resign: true}, do: nothing})
	if err != nil {
		return err
	}
	d.report.Line("RESIGNS: %s returns from lead; it enters the election again, at the end of the queue ...", former)
	return d.waitNext(ctx, former)
}

// kill kills the leader. The next candidate leads when the servers have heard nothing from the
// killed one for the session timeout.
func (d *demo) kill(ctx context.Context) error {
	kill := func(p *child.Process) error { p.Kill(); return nil }
	former, err := d.intervene(ctx, intervention{until: atOnce, do: kill})
	if err != nil {
		return err
	}
	d.report.Line("KILLED: %s is dead (kill -9). The servers wait for the session timeout, %v ...", former, d.agreed)
	if err := d.waitNext(ctx, former); err != nil {
		return err
	}
	return d.start(ctx, former.Candidate, candidates)
}

// pause pauses the leader. To the servers, a paused process looks like a dead one. When it is
// resumed, it must not act as the leader.
func (d *demo) pause(ctx context.Context) error {
	if !child.CanPause {
		d.report.Line("(On this system no process can be paused: that part is left out.)")
		return nil
	}
	resumed := make(chan struct{})
	former, err := d.intervene(ctx, intervention{until: resumed, do: (*child.Process).Pause})
	if err != nil {
		return err
	}
	d.report.Line("PAUSED: %s is stopped (kill -STOP) during a request, as if its machine were suspended ...", former)
	err = d.waitNext(ctx, former)
	// The process is resumed in any case. Only then it gets the answer to its request.
	err = errors.Join(err, d.children.Process(former.Candidate).Resume())
	close(resumed)
	if err != nil {
		return err
	}
	d.report.Line("RESUMED: %s goes on (kill -CONT). It does not know that another candidate leads, "+
		"and checks its term before it acts ...", former)
	lost, err := d.resource.waitLost(ctx, former.Token)
	if err != nil {
		return err
	}
	d.report.Line("... and finds out, without having done anything: %s", lost.Why)
	return d.waitQueue(ctx, candidates) // it enters the election again
}

func (d *demo) conclude() error {
	terms, err := d.resource.check()
	if err != nil {
		return err
	}
	d.report.Text("\nThe election did what it promises: %d terms, never two leaders at once, "+
		"and each term had a larger token, from %d to %d.", len(terms), terms[0].Token, terms[len(terms)-1].Token)
	return nil
}
