package main

import (
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
)

// mostTurns is the largest number of turns of which each gets a line. Of more turns only some are
// shown.
const mostTurns = 25

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
