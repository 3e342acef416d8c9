package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func lockCommand(command []string, code *int) *cli.Command {
	return &cli.Command{
		Name:      "lock",
		Usage:     "run a command while holding a lock",
		UsageText: "docent lock [options] PATH -- COMMAND [ARGUMENT...]",
		Description: text(`
			docent lock waits for the lock on PATH, runs COMMAND, and releases the lock when COMMAND has ended.
			Standard input, output and error are COMMAND's. Signals are passed on to it. No shell is involved.

			The lock is a mutex. With --shared or --exclusive it is one side of a read-write lock, with --limit a
			semaphore.

			If the servers do not answer, COMMAND gets SIGTERM when the lock is about to be lost, and SIGKILL before
			the servers can give the lock to another client. On Linux that is so even if docent is paused or killed.
			What COMMAND leaves running when it ends is ended in the same way.

			If another client asks for the lock, as docent revoke does, COMMAND gets SIGTERM, and as much time to end
			as it needs: the lock is held until then. --on-revoke kill sends SIGKILL after the grace, and --on-revoke
			ignore does nothing. The exit code is COMMAND's. COMMAND is not started if docent knows of a request before
			that, because it was asked while it waited for the lock. The exit code is 75 then.

			COMMAND has these in its environment:
			  DOCENT_TOKEN               the fencing token, larger for each later holder
			  DOCENT_PATH, DOCENT_NODE   the path of the lock, and of the lock node
			  DOCENT_SESSION             the id of the session, in hexadecimal
			  DOCENT_SESSION_TIMEOUT_MS  the session timeout that the servers have granted, in milliseconds
			  DOCENT_GRACE_MS            the time between SIGTERM and SIGKILL, in milliseconds

			Examples:
			  docent lock /locks/backup -- backup.sh /data
			  docent lock -n /locks/report -- report.sh              # not if it runs already
			  docent lock -w 30s /locks/deploy -- make deploy        # wait half a minute at most
			  docent lock --shared /locks/index -- search.sh         # with other readers
			  docent lock --limit 3 /locks/download -- curl -O "$u"  # three at a time
			  docent lock /locks/x -- sh -c 'cat >"out.$DOCENT_TOKEN"' <in

`) + exitCodes,
		Flags: append([]cli.Flag{
			&cli.DurationFlag{
				Name: "wait", Aliases: []string{"w"},
				Usage:       "wait for servers and lock for this `TIME` at most; 0 is -n",
				HideDefault: true,
			},
			&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "do not wait for other holders"},
			&cli.BoolFlag{Name: "shared", Aliases: []string{"s"}, Usage: "take the read side of a read-write lock"},
			&cli.BoolFlag{Name: "exclusive", Aliases: []string{"x"}, Usage: "take the write side of a read-write lock"},
			&cli.IntFlag{Name: "limit", Usage: "take permits of a semaphore that has `N` of them", HideDefault: true},
			&cli.IntFlag{Name: "permits", Usage: "the number `K` of permits to take", Value: 1},
			&cli.IntFlag{
				Name: "conflict-exit-code", Aliases: []string{"E"},
				Usage: "the exit `CODE` if the lock is not acquired",
				Value: exitNotAcquired,
			},
		}, runnerFlags()...),
		Action: func(ctx context.Context, c *cli.Command) (err error) {
			*code, err = lock(ctx, c, command)
			if conflict := c.Int("conflict-exit-code"); err != nil && codeOf(err) == exitNotAcquired {
				return coded{err, conflict}
			}
			return err
		},
	}
}

// lock carries out docent lock, and returns the exit code of the command, or an error.
func lock(ctx context.Context, c *cli.Command, command []string) (code int, err error) {
	kind, err := kindOf(c)
	if err != nil {
		return 0, err
	}
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
	defer func() { _ = r.client.Close() }() // ends the session, if the release has left the node
	locker, err := kind.locker(r)
	if err != nil {
		return 0, usageError{err}
	}
	held, err := kind.acquire(ctx, r.client, locker)
	if err != nil {
		return 0, err
	}
	ending, err := r.under(ctx, held)
	lost := held.Err()
	r.signals.finish()
	switch released := held.Release(); {
	case lost != nil:
	case errors.Is(released, recipes.ErrReleasePending):
		r.say("the release of the lock is not confirmed: " + released.Error())
	default:
		lost = released
	}
	return outcome(ending, err, lost)
}

// kind is which lock to acquire, and how long to wait for it.
type kind struct {
	shared, exclusive bool // a read-write lock
	limit, permits    int  // a semaphore, if the limit is not 0
	wait              time.Duration
	bounded           bool // wait counts
	try               bool
}

// kindOf returns what the flags say.
func kindOf(c *cli.Command) (kind, error) {
	k := kind{
		shared: c.Bool("shared"), exclusive: c.Bool("exclusive"), limit: c.Int("limit"), permits: c.Int("permits"),
		wait: c.Duration("wait"), bounded: c.IsSet("wait"), try: c.Bool("no-wait"),
	}
	conflict := c.Int("conflict-exit-code")
	switch {
	case k.shared && k.exclusive:
		return k, usagef("--shared and --exclusive exclude each other")
	case c.IsSet("limit") && (k.shared || k.exclusive):
		return k, usagef("--limit excludes --shared and --exclusive")
	case c.IsSet("permits") && !c.IsSet("limit"):
		return k, usagef("--permits needs --limit, the number of permits of the semaphore")
	case c.IsSet("limit") && (k.permits < 1 || k.permits > k.limit):
		return k, usagef("--permits %d --limit %d: want at least one permit, and not more than the limit",
			k.permits, k.limit)
	case k.wait < 0:
		return k, usagef("--wait %v: want a time that is not negative", k.wait)
	case k.bounded && k.try:
		return k, usagef("--wait and --no-wait exclude each other")
	case conflict < 0 || conflict > 255:
		return k, usagef("--conflict-exit-code %d: want a number from 0 to 255", conflict)
	}
	if k.bounded && k.wait == 0 {
		k.bounded, k.try = false, true
	}
	return k, nil
}

// locker returns the lock.
func (k kind) locker(r *runner) (recipes.Locker, error) {
	switch {
	case k.limit > 0:
		s, err := semaphore.New(r.client, r.path, k.limit, semaphore.WithData(r.identity()))
		return permits{s, k.permits}, err
	case k.shared || k.exclusive:
		l, err := rwlock.New(r.client, r.path, rwlock.WithData(r.identity()))
		if err != nil {
			return nil, err
		}
		if k.shared {
			return l.Read(), nil
		}
		return l.Write(), nil
	}
	return mutex.New(r.client, r.path, mutex.WithData(r.identity()))
}

// permits is several permits of a semaphore.
type permits struct {
	semaphore *semaphore.Semaphore
	n         int
}

func (p permits) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return p.semaphore.AcquireN(ctx, p.n)
}

func (p permits) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return p.semaphore.TryAcquireN(ctx, p.n)
}

// errNoServer is the error if there was no server in the time to wait.
var errNoServer = coded{errors.New("no server can be reached"), exitNoServers}

// acquire acquires the lock. If ctx ends it fails with the cause.
func (k kind) acquire(ctx context.Context, client *framework.Client, l recipes.Locker) (*recipes.Hold, error) {
	within := ctx
	if k.bounded {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, k.wait)
		defer cancel()
	}
	acquire := l.Acquire
	if k.try {
		acquire = l.TryAcquire
	}
	held, err := acquire(within)
	switch {
	case err == nil:
		return held, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil && (client.Server() == "" || errors.Is(err, framework.ErrNotConnected)):
		return nil, fmt.Errorf("%w: %w", errNoServer, err)
	case within.Err() != nil && !errors.Is(err, recipes.ErrNotAcquired):
		return nil, fmt.Errorf("%w: %w", recipes.ErrNotAcquired, err)
	}
	return nil, err
}
