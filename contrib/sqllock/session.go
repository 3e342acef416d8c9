package sqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-zk/docent/recipes"
)

// SessionLock is a lock of a connection, a recipes.Locker: pg_advisory_lock of PostgreSQL, GET_LOCK of
// MySQL. It is safe for concurrent use, and does not re-enter. The zero value fails to acquire.
//
// The database takes the lock away as soon as it learns that the connection has ended. So after a crash
// others need not wait for a lease. The connection is that of one hold, and is closed with it, never put
// back to the pool: a hold needs a connection of the limit of the pool (sql.DB.SetMaxOpenConns), and so
// does one waiter of each client.
//
// The database ends the session if it hears nothing for the lease: idle_session_timeout of PostgreSQL,
// wait_timeout of MySQL, in whole seconds. Both are set for that connection only. So a client that is
// cut off loses the lock after the lease, and no settings of TCP keepalive are needed. Limits of a
// statement's time do not apply to the connection in PostgreSQL. In MySQL the limit of a statement,
// max_statement_time of MariaDB, and readTimeout of a driver must be longer than half of the lease, or
// waiters fail.
//
// The hold asks on the connection at a third of the lease whether that still has the lock. It ends by a
// local deadline, as holds of Lock, which is before the lease.
//
// If the connection ends before the hold, the hold ends at the next of these requests only. Meanwhile
// another client may have the lock. That is so if the server is restarted or an operator ends the
// session, and the lock is lost in each failover. A driver, too, may close the connection: when a request
// gets no answer in half a lease, or finds that the connection is broken. The hold ends a moment after it,
// and another client may have the lock in that moment. Where that matters use Lock, or tokens: see
// WithSessionTokens. A pooler such as PgBouncer must have the mode session.
//
// Hold.Release fails with recipes.ErrForeignLost if the connection is broken. If it broke after the
// database had released the lock and before the answer came, the hold was not lost, and Release says so
// all the same. So it does in MySQL if an operator kills the statement.
//
// A replica has session locks of its own, so acquires fail on a server that takes no writes: in PostgreSQL if
// pg_is_in_recovery() is true, in MySQL if @@read_only is set, also for a short time on the primary. A hold
// whose server stops taking writes later goes on.
//
// It needs PostgreSQL 14 or later.
type SessionLock struct {
	e   engine
	key any
}

// NewSessionLock returns the lock of connections with a name, which has 1 to 255 bytes of UTF-8. It makes
// no request. A SessionLock and a Lock with one name do not exclude each other. NewSessionLock returns an
// error if c is nil or a zero value, or if the name is not valid.
func NewSessionLock(c *Client, name string) (*SessionLock, error) {
	if err := c.check(name); err != nil {
		return nil, fmt.Errorf("sqllock: session lock: %w", err)
	}
	key := c.sessionKey(name)
	k := kind{
		open:  func() table { return &session{sessions: c.sessions, key: key, turn: make(chan struct{}, 1)} },
		waits: c.sessions.waits,
		limit: c.lease / 2, // it cannot be repeated: a connection ends with a request that fails
		gates: &c.sessions.gates,
	}
	return &SessionLock{engine{c, k, name}, key}, nil
}

// Name returns the name of the lock.
func (l *SessionLock) Name() string { return l.e.name }

// Key returns what the lock is called in the database. It is made from the name and from the table of
// the client, which is a namespace here and need not exist. In PostgreSQL it is a number of 64 bits, for
// pg_advisory_lock of that database. In MySQL it is a text for GET_LOCK, which is of the whole server:
// clients of several databases that must not exclude each other need different tables. Different names
// have the same key about once in 2^64 and 2^128 pairs. Then they exclude each other, too.
//
// Key of the zero value returns "".
func (l *SessionLock) Key() string {
	if l.key == nil {
		return ""
	}
	return fmt.Sprint(l.key)
}

// sessionKey returns what a name is called in the database.
func (c *Client) sessionKey(name string) any {
	sum := sha256.Sum256([]byte(c.config.table + "\x00" + name))
	if c.dialect == PostgreSQL {
		return int64(binary.BigEndian.Uint64(sum[:8])) // any number is a key
	}
	return fmt.Sprintf("docent:%x", sum[:16]) // GET_LOCK has 64 characters, and ignores case
}

// Acquire waits until the lock is acquired. Goroutines of one client acquire it in the order in which
// they came. Among clients the database decides: PostgreSQL has the waiters in a queue, which they
// enter after a first request that does not wait, and leave and enter again at a third of the lease.
//
// It fails as Acquire of Lock does. Whenever it fails it does not hold the lock, and its connection is
// closed. The database may still have its wait for up to a third of the lease.
//
// ctx limits only the wait, not the hold.
func (l *SessionLock) Acquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).wait)
}

// TryAcquire fails with recipes.ErrNotAcquired if the lock is held. Otherwise it fails like Acquire, at
// the first error. It opens a connection and closes it.
func (l *SessionLock) TryAcquire(ctx context.Context) (*recipes.Hold, error) {
	return l.e.acquire(ctx, (*attempt).try)
}

// AcquireWithin is Acquire that waits at most d, or TryAcquire if d is 0 or less: see
// recipes.AcquireWithin.
func (l *SessionLock) AcquireWithin(ctx context.Context, d time.Duration) (*recipes.Hold, error) {
	return recipes.AcquireWithin(ctx, l, d)
}

// Do acquires the lock, calls fn with a context that ends with the hold, and releases the hold: see
// recipes.Do.
func (l *SessionLock) Do(ctx context.Context, fn func(ctx context.Context, hold *recipes.Hold) error) error {
	return recipes.Do(ctx, l, fn)
}

// sessions has the statements of session locks.
type sessions struct {
	*database
	waits  time.Duration
	tokens bool
	gates  gates

	settings                string
	takesWrites             statement
	try, wait, held, unlock statement
	nextToken, readToken    statement
}

func newSessions(d *database, c *config) *sessions {
	s := &sessions{
		database: d, waits: c.lease / 3, tokens: c.sessionTokens,
		try: c.statement("{try session}"), wait: c.statement("{await session}"), held: c.statement("{has session}"),
		unlock: c.statement("{release session}"), nextToken: c.statement("{next token}"),
		readToken:   c.statement("SELECT fence FROM {table} WHERE name = :name"),
		takesWrites: c.statement("{takes writes}"),
	}
	if c.dialect == PostgreSQL {
		// Statements wait for longer than their usual limits may allow. PostgreSQL 16 has no transaction_timeout.
		s.settings = fmt.Sprintf("SELECT set_config('idle_session_timeout', '%d', false), "+
			"set_config('lock_timeout', '%d', false), (SELECT count(set_config(name, '0', false)) "+
			"FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout'))",
			c.lease.Milliseconds(), s.waits.Milliseconds())
	} else {
		s.waits = s.waits.Truncate(time.Second)
		s.settings = fmt.Sprintf("SET SESSION wait_timeout = %d", (c.lease+time.Second-1)/time.Second)
	}
	return s
}

// session is a connection with the lock, or without.
type session struct {
	*sessions
	key        any
	token      int64
	refused    bool          // another holder has had the lock
	turn       chan struct{} // full: a statement uses the connection
	unanswered atomic.Bool   // the connection has failed because a statement has got no answer, or was canceled

	mu     sync.Mutex
	conn   *sql.Conn // nil: there is none
	reason error     // why the connection has failed; nil: it has not
}

var (
	errSessionEnded   = errors.New("its connection has ended")
	errSessionNotHeld = errors.New("it has not the lock")
)

// read opens the connection. Who has the lock is not known.
func (s *session) read(ctx context.Context, _ request) (row, error) {
	if s.current() != nil {
		return row{there: true}, nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return row{}, err
	}
	s.mu.Lock()
	s.conn, s.reason = conn, nil
	s.mu.Unlock()
	s.unanswered.Store(false)
	if err := s.prepare(ctx, conn); err != nil {
		s.fail(err)
		s.end()
		return row{}, err
	}
	return row{there: true}, nil
}

// prepare makes the settings of a connection. It returns an error if its server may be a replica.
func (s *sessions) prepare(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, s.settings); err != nil {
		return err
	}
	var takesWrites bool
	err := conn.QueryRowContext(ctx, s.takesWrites.text).Scan(&takesWrites)
	if err == nil && !takesWrites {
		err = fmt.Errorf("the server takes no writes, as %s says: a replica has locks of its own", readOnly[s.dialect])
	}
	return err
}

// readOnly is what says that a server takes no writes.
var readOnly = map[Dialect]string{PostgreSQL: "pg_is_in_recovery()", MySQL: "@@read_only"}

func (s *session) insert(context.Context, string) error { return nil }

// acquire tries first, and waits if that was refused. If ctx ends in the wait, it is known what it was for.
func (s *session) acquire(ctx context.Context, q request) (time.Duration, error) {
	how := s.try
	if q.waiting && s.waits > 0 && s.refused {
		how = s.wait
	}
	won, err := s.ask(ctx, how)
	if err == nil && !won {
		s.refused = true
	}
	if won && err == nil && s.tokens {
		err = s.takeToken(ctx)
	}
	if err != nil {
		s.end() // it may have the lock
	}
	return s.leased(won, err)
}

// takeToken takes the next token, on the connection that has the lock: no other client can meanwhile.
func (s *session) takeToken(ctx context.Context) error {
	conn, v := s.current(), values{name: "session " + fmt.Sprint(s.key)}
	err := s.exec(ctx, conn, s.nextToken, v)
	if err == nil {
		err = conn.QueryRowContext(ctx, s.readToken.text, s.readToken.args(v)...).Scan(&s.token)
	}
	if err != nil {
		s.fail(err)
	}
	return err
}

// renew does not end a connection that has failed: others would have the lock before the hold has ended.
// The release after it does.
func (s *session) renew(ctx context.Context, _ request) (time.Duration, error) {
	held, err := s.ask(ctx, s.held)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return 0, err // the client is closed
	case err == nil && !held:
		s.fail(errSessionNotHeld)
	}
	return s.leased(held && err == nil, nil) // it cannot be repeated after an error
}

func (s *session) why(context.Context, request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == nil {
		return errSessionEnded
	}
	return fmt.Errorf("%w: %w", errSessionEnded, s.reason)
}

// release ends the connection, too, unless another statement still has it.
func (s *session) release(ctx context.Context, q request) error {
	held, err := s.ask(ctx, s.unlock)
	if err != nil && s.current() != nil { // it was not asked
		return err
	}
	if err == nil && !held {
		s.fail(errSessionNotHeld)
	}
	s.end()
	switch {
	case err == nil && held:
		return nil
	case s.unanswered.Load(): // the database takes the lock away with the connection
		return s.why(ctx, q)
	case err != nil && ctx.Err() != nil:
		s.unanswered.Store(true)
		return s.why(ctx, q)
	}
	return fmt.Errorf("%w: %w", recipes.ErrForeignLost, s.why(ctx, q))
}

// undo does nothing: an acquire without an answer has ended its connection.
func (s *session) undo(context.Context, request) error { return nil }

func (s *session) leave(_ context.Context, _ request, won bool) error {
	if !won {
		s.end()
	}
	return nil
}

func (s *session) tokenOf(request) int64 { return s.token }

// ask runs a statement that answers yes or no, after the one that is under way. NULL is no answer. The
// connection fails unless the answer is known.
func (s *session) ask(ctx context.Context, how statement) (bool, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	conn := s.current()
	if conn == nil {
		return false, errSessionEnded
	}
	var yes bool
	v := values{key: s.key, wait: s.waits}
	err := conn.QueryRowContext(ctx, how.text, how.args(v)...).Scan(&yes)
	switch {
	case hasState(err, lockTimeout):
		return false, nil
	case err != nil:
		if ctx.Err() != nil || timedOut(err) || hasState(err, canceled) {
			s.unanswered.Store(true)
		}
		s.fail(err)
	}
	return yes, err
}

// timedOut reports whether a driver has ended a request by a timer of its own.
func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// current returns the connection that statements may use, or nil.
func (s *session) current() *sql.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		return nil
	}
	return s.conn
}

// fail has no statement use the connection any more. The first reason stays.
func (s *session) fail(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.reason == nil {
		s.reason = ofRequest(reason)
	}
}

// end closes the connection, which has settings and perhaps locks that the pool must not have.
func (s *session) end() {
	s.mu.Lock()
	conn := s.conn
	s.conn = nil
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
