package sqllock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes"
)

const (
	// DefaultTable is the table of locks without WithTable.
	DefaultTable = "docent_locks"
	// DefaultTTL is how long a lease is without WithTTL.
	DefaultTTL = 15 * time.Second
	// DefaultPollInterval is the longest pause between two looks of a waiter without WithPollInterval.
	DefaultPollInterval = 500 * time.Millisecond

	minLease, maxLease = time.Second, 24 * time.Hour
	minPoll            = time.Millisecond
	maxOwner           = 100 // bytes
)

// Option is a setting of New.
type Option func(*config) error

type config struct {
	dialect       Dialect
	table         string
	lease         time.Duration
	poll          time.Duration
	owner         string
	channel       string
	listen        Listen
	sessionTokens bool
	fair          bool
	keyTable      *KeyTable // nil: there is none
	logger        *zap.Logger
	metrics       metrics.Metrics
}

func defaults(d Dialect) *config {
	host, _ := os.Hostname() // empty if it has none
	process := recipes.Identity{Host: host, Process: filepath.Base(os.Args[0]), PID: os.Getpid()}
	return &config{
		dialect: d, table: DefaultTable, lease: DefaultTTL, poll: DefaultPollInterval,
		owner: clip(process.String()), logger: zap.NewNop(),
	}
}

// statement returns a statement for the table of locks. UTC_TIMESTAMP depends on no time zone.
func (c *config) statement(text string) statement {
	return c.dialect.statement(text, "{table}", c.table, "{queue}", queueOf(c.table),
		"{until}", "valid_until", "{mysql now}", "UTC_TIMESTAMP(6)")
}

// notifying returns a statement that notifies of the row that it changes.
func (c *config) notifying(text string) statement {
	if c.channel != "" {
		text = fmt.Sprintf(notifyText, text)
	}
	return c.statement(text)
}

// clip returns what can be a part of an owner.
func clip(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxOwner)], "")
	return strings.ReplaceAll(s, "\x00", "")
}

// WithTable sets the table of locks, perhaps with its schema, such as "jobs.locks". Each part of the
// name has ASCII letters, digits and _ only. All clients of a lock must name the same table.
func WithTable(name string) Option {
	return func(c *config) error {
		if err := checkTable(name); err != nil {
			return fmt.Errorf("WithTable: %w", err)
		}
		c.table = name
		return nil
	}
}

// WithTTL sets for how long the database leaves a lock to a holder that it does not hear from, from
// 1 s to 24 h. A hold renews its lease at a third of it. Clients of one lock may have different
// leases.
func WithTTL(d time.Duration) Option {
	return func(c *config) error {
		if d < minLease || d > maxLease {
			return fmt.Errorf("WithTTL: %v is not between %v and %v", d, minLease, maxLease)
		}
		c.lease = d
		return nil
	}
}

// WithPollInterval sets the longest pause between two looks of a waiter, from 1 ms. More than 24 h means 24 h. The
// first pauses are shorter, and each is random between half of it and one and a half.
func WithPollInterval(d time.Duration) Option {
	return func(c *config) error {
		if d < minPoll {
			return fmt.Errorf("WithPollInterval: %v is less than %v", d, minPoll)
		}
		c.poll = min(d, maxLease) // the numbers that are made from it must not overflow
		return nil
	}
}

// WithOwner sets what the column owner shows of a holder, up to 100 bytes of UTF-8, before a random
// text. Without it there are the process and the host.
func WithOwner(label string) Option {
	return func(c *config) error {
		if len(label) > maxOwner || label != clip(label) {
			return fmt.Errorf("WithOwner: %q is not text of up to %d bytes", label, maxOwner)
		}
		c.owner = label
		return nil
	}
}

// Listen receives the notifications of a channel of PostgreSQL: it runs LISTEN on a connection, and
// calls notified with the payload of each notification. It returns when ctx ends or the connection
// fails; then it is called again. database/sql has no way to receive notifications, so this is done
// with the driver: the example of WithNotify is for pgx.
type Listen func(ctx context.Context, channel string, notified func(payload string)) error

// WithNotify has releases wake waiters by NOTIFY on a channel of PostgreSQL, which has small ASCII
// letters, digits and _ only: LISTEN folds capital letters, and NOTIFY does not. All clients of a lock
// should have it: the release of a client without it is found at the next poll. Waiters go on to poll,
// because a notification may be missed while listen connects. With it WithPollInterval may be longer.
func WithNotify(channel string, listen Listen) Option {
	return func(c *config) error {
		switch {
		case c.dialect != PostgreSQL:
			return fmt.Errorf("WithNotify: %v has no notifications", c.dialect)
		case !identifier.MatchString(channel) || channel != strings.ToLower(channel):
			return fmt.Errorf("WithNotify: %q is not the name of a channel", channel)
		case listen == nil:
			return errors.New("WithNotify: listen is nil")
		}
		c.channel, c.listen = channel, listen
		return nil
	}
}

// WithFairQueue has the waiters for a Lock acquire it in the order in which they came, in all clients.
// They are in a second table: see Dialect.CreateQueue. A wait takes three more statements, and two at each
// third of the lease. Each waiter asks the database, not only the first one of a client. The next one of
// the queue does so eight times as often as WithPollInterval says, the one behind it four times, and so
// on. A hand-over to another client takes about that long, unless WithNotify is used. While a transaction has
// the lock by InTx, each asks as often as WithPollInterval says. A waiter that was not heard of for the
// lease loses its place. So one that crashes when it is the next delays the others for a lease at most.
//
// TryAcquire fails with recipes.ErrNotAcquired if others wait, also if the lock is free. It does so for a
// moment after a wait has ended, too, until the row of that waiter is deleted. InTx does not look at the queue.
// All clients of a lock should have the option: one without it acquires a free lock although others wait.
func WithFairQueue() Option {
	return func(c *config) error {
		c.fair = true
		return nil
	}
}

// WithSessionTokens has each hold of a SessionLock take a fencing token, in two more statements. Without
// it they have none, and Hold.Token returns 0. The tokens are in rows of the table whose names begin
// with "session ".
func WithSessionTokens() Option {
	return func(c *config) error {
		c.sessionTokens = true
		return nil
	}
}

// WithKeyTable sets the table of KeyLocks, which Client.CreateTable does not create.
func WithKeyTable(k KeyTable) Option {
	return func(c *config) error {
		k := k.complete()
		if err := k.check(); err != nil {
			return fmt.Errorf("WithKeyTable: %w", err)
		}
		c.keyTable = &k
		return nil
	}
}

// WithLogger sets where losses and failed renewals are logged. The logger gets the name docent.
func WithLogger(l *zap.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("WithLogger: the logger is nil")
		}
		c.logger = l.Named("docent")
		return nil
	}
}

// WithMetrics sets the receiver of metrics.LockWait, LockWaiters, LockHold and LockLosses. The recipe
// is "foreign", and the path is the name of the lock. Lock.InTx is not measured.
func WithMetrics(m metrics.Metrics) Option {
	return func(c *config) error {
		if m == nil {
			return errors.New("WithMetrics: the metrics are nil")
		}
		c.metrics = m
		return nil
	}
}
