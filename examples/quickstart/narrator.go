package main

import (
	"io"

	"github.com/docent-zk/docent/examples/internal/program"
)

// mostTurns is how many turns are worth a line each. Of more, only every so many are told.
const mostTurns = 25

// narrator tells what happens.
type narrator struct {
	*program.Reporter
	every int // turns to a line
}

func newNarrator(out io.Writer, turns int) *narrator {
	return &narrator{program.NewReporter(out), (turns + mostTurns - 1) / mostTurns}
}

func (n *narrator) turn(number int, v visit) {
	if number%n.every == 0 {
		n.Line("worker %d holds the lock (token %d): record %d -> %d", v.Worker, v.Token, v.Value-1, v.Value)
	}
}

func (n *narrator) intro(cfg config) {
	n.Text(`A lock between processes, kept by ZooKeeper servers: at most one process holds it at a time.

%d workers, each a process of its own, add 1 to the same record, %d times each: they read it, think, and write it back.
Without a lock they would overwrite each other's work. With each turn comes a token, a number that only grows.
One worker will be killed while it holds the lock. The others must then be able to go on, and a write of the dead one
that arrives too late must be refused.
`, cfg.workers, cfg.increments)
	if n.every > 1 {
		n.Text("(There will be about %d turns. One in %d is shown.)\n", cfg.workers*cfg.increments, n.every)
	}
}
