package main

import (
	"context"
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
)

// mostTurns is the largest number of turns of which each gets a line. Of more turns only some are
// shown.
const mostTurns = 25

// colours are the styles of the output on a terminal.
var colours = []program.Rule{
	{Pattern: `^ *[0-9.]+s `, Styles: []program.Style{program.Dim}},
	{Pattern: `[Ww]orker \d+`, Styles: []program.Style{
		program.Blue, program.Cyan, program.Yellow, program.Magenta, program.Green,
	}},
	{Pattern: `NOW IT IS KILLED|died with the lock|is dead`, Styles: []program.Style{program.Red}},
	{Pattern: `The store refuses it|was refused`, Styles: []program.Style{program.Red}},
	{Pattern: `the lock has passed on|The lock did what it promises`, Styles: []program.Style{program.Green}},
	{Pattern: `token:? \d+|record \d+ -> \d+`, Styles: []program.Style{program.Bold}},
}

// screen returns where the output goes.
func screen(ctx context.Context, cfg config, stdout io.Writer) io.Writer {
	out := program.Coloured(stdout, colours...)
	if cfg.slow {
		return program.Slowly(ctx, out)
	}
	return out
}

// reporter prints what happens.
type reporter struct {
	*program.Reporter
	every int // turns for each line
}

func newReporter(out io.Writer, turns int) *reporter {
	return &reporter{program.NewReporter(out), (turns + mostTurns - 1) / mostTurns}
}

func (r *reporter) turn(number int, q request) {
	if number%r.every == 0 {
		r.Line("worker %d holds the lock (token %d): record %d -> %d", q.Worker, q.Token, q.Value-1, q.Value)
	}
}

func (r *reporter) intro(cfg config) {
	r.Text(`A lock between processes, kept by ZooKeeper servers: at most one process holds it at a time.

%d workers, each a process of its own, add 1 to the same record, %d times each: they read it, think, and write it back.
Without a lock they would overwrite each other's work. With each turn comes a token, a number that only grows.
One worker will be killed while it holds the lock. The others must then be able to go on, and a write of the dead one
that arrives too late must be refused.
`, cfg.workers, cfg.increments)
	if r.every > 1 {
		r.Text("(There will be about %d turns. One in %d is shown.)\n", cfg.workers*cfg.increments, r.every)
	}
}
