package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/recipes/leader"
)

func electCommand(command []string, code *int) *cli.Command {
	return &cli.Command{
		Name:      "elect",
		Usage:     "run a command while leading",
		UsageText: "docent elect [options] PATH -- COMMAND [ARGUMENT...]",
		Description: text(`
			docent elect stands for election on PATH, and runs COMMAND while it leads. When COMMAND has ended, or the
			leadership is lost, docent stands for election again, behind the other candidates. If COMMAND fails again
			and again, docent makes a pause of up to ten seconds. It waits for servers without a limit.

			SIGINT, SIGTERM and SIGQUIT are passed on to COMMAND, and end docent when COMMAND has ended.

			If another client asks for the leadership, as docent revoke does, COMMAND gets SIGTERM: see --on-revoke.
			When it has ended, the next candidate leads, and docent stands for election again behind the others.

			COMMAND is ended before another candidate can lead, and has the same environment, as docent lock --help
			describes.

			Examples:
			  docent elect /service/scheduler -- scheduler --active
			  docent elect --once /service/migration -- migrate.sh  # lead once, and exit with COMMAND's exit code

`) + exitCodes,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "end when the command has ended"},
		}, runnerFlags()...),
		Action: func(ctx context.Context, c *cli.Command) (err error) {
			*code, err = elect(ctx, c, command)
			return err
		},
	}
}

// elect carries out docent elect, and returns the exit code of the last command, or an error.
func elect(ctx context.Context, c *cli.Command, command []string) (code int, err error) {
	r, err := newRunner(c, command)
	if err != nil {
		return 0, err
	}
	var stop func()
	r.signals, ctx, stop = startRelay(ctx)
	defer stop()
	if err := r.connect(c); err != nil {
		return 0, err
	}
	defer func() { _ = r.client.Close() }()
	t := terms{runner: r, once: c.Bool("once")}
	election, err := leader.New(r.client, r.path, leader.WithID(string(r.identity())), leader.WithRequeue(t.again))
	if err != nil {
		return 0, usageError{err}
	}
	switch err := election.Run(ctx, t.lead); {
	case t.last:
		return t.code, t.err
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	default:
		return 0, err
	}
}

// terms runs the command in each term.
type terms struct {
	*runner
	once bool
	last bool  // no other term follows
	code int   // the exit code after the last term, if there is no error
	err  error // of the last term
}

// lead runs the command in one term. Its error makes the candidate pause before it stands again.
func (t *terms) lead(ctx context.Context, term *leader.Term) error { return t.run(ctx, term) }

func (t *terms) run(ctx context.Context, term hold) error {
	ending, err := t.under(ctx, term)
	lost := term.Err()
	stopped := t.signals.finish()
	t.code, t.err = outcome(ending, err, lost)
	asked := errors.Is(err, errAsked)
	t.last = t.once || stopped || errors.As(err, new(coded)) && !asked || errors.As(err, new(usageError))
	switch {
	case t.last || t.err == nil && (t.code == exitFine || ending.Asked):
		return t.err
	case asked:
		t.say(t.err.Error())
		return nil
	case t.err == nil:
		t.err = fmt.Errorf("the command has ended with the exit code %d", t.code)
	}
	t.say(t.err.Error())
	return t.err
}

// again reports whether to stand for election again.
func (t *terms) again(error) bool { return !t.last }
