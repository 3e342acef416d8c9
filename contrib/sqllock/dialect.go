package sqllock

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Dialect is the kind of a database.
type Dialect int

const (
	// PostgreSQL is PostgreSQL 9.5 or later.
	PostgreSQL Dialect = iota + 1
	// MySQL is MariaDB 10.6 or later, or MySQL 8.0.1 or later.
	MySQL
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

func (d Dialect) check() error {
	if d != PostgreSQL && d != MySQL {
		return fmt.Errorf("%v is neither PostgreSQL nor MySQL", d)
	}
	return nil
}

// maxName is the length of the longest name of a lock, in bytes.
const maxName = 255

// CreateTable returns the statement that creates a table of locks, unless it exists. Run it once, for
// example with the migrations of the program. It returns an error if d or the name is not valid: see
// WithTable.
func (d Dialect) CreateTable(table string) (string, error) {
	if err := d.check(); err != nil {
		return "", fmt.Errorf("sqllock: create table: %w", err)
	}
	if err := checkTable(table); err != nil {
		return "", fmt.Errorf("sqllock: create table: %w", err)
	}
	if d == PostgreSQL {
		return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
	name        varchar(255) COLLATE "C" PRIMARY KEY,
	fence       bigint NOT NULL,
	owner       varchar(255),
	valid_until timestamptz NOT NULL
)`, table), nil
	}
	// VARBINARY compares bytes: no two names are equal because of their case or of spaces at the end.
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
	name        VARBINARY(255) PRIMARY KEY,
	fence       BIGINT NOT NULL,
	owner       VARBINARY(255),
	valid_until DATETIME(6) NOT NULL
) ENGINE=InnoDB`, table), nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// checkTable returns an error if a name is not that of a table, perhaps with its schema.
func checkTable(name string) error {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if len(parts) > 2 || !identifier.MatchString(part) {
			return fmt.Errorf("%q is not the name of a table", name)
		}
	}
	return nil
}

// fragments are the parts of statements in which the dialects differ.
var fragments = map[Dialect]*strings.Replacer{
	// clock_timestamp goes on within a transaction, now does not.
	PostgreSQL: strings.NewReplacer(
		"{now}", "clock_timestamp()",
		"{later}", "clock_timestamp() + CAST(:lease AS bigint) * interval '1 microsecond'",
		// LEAST and GREATEST are for infinity. They ignore NULL.
		"{left}", `CASE WHEN {until} IS NOT NULL THEN
			CAST(extract(epoch FROM LEAST(GREATEST({until}, clock_timestamp() - interval '100 years'),
			clock_timestamp() + interval '100 years') - clock_timestamp()) * 1000000 AS bigint) END`,
		"{clock}", "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
		"{unless there}", "ON CONFLICT DO NOTHING",
		"{acquire}", `UPDATE {table} SET owner = :owner, fence = :next, valid_until = {later}
			WHERE fence = :seen AND name = ({free row})`,
		"{for share}", "FOR SHARE",
		"{acquire key}", `INSERT INTO {table} AS t ({name}, {holder}, {until}) VALUES (:name, :owner, {later})
			ON CONFLICT ({name}) DO UPDATE SET {holder} = EXCLUDED.{holder}, {until} = EXCLUDED.{until}
			WHERE t.{until} <= {now} OR t.{holder} = :owner`,
		"{is owner}", "{holder} = :owner",
		"{try session}", "SELECT pg_try_advisory_lock(CAST(:key AS bigint))",
		"{await session}", "SELECT pg_advisory_lock(CAST(:key AS bigint)) IS NOT NULL",
		"{release session}", "SELECT pg_advisory_unlock(CAST(:key AS bigint))",
		"{takes writes}", "SELECT NOT pg_is_in_recovery()",
		"{has session}", `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = CAST((CAST(:key AS bigint) >> 32) & 4294967295 AS oid)
			AND objid = CAST(CAST(:key AS bigint) & 4294967295 AS oid) AND objsubid = 1
			AND pid = pg_backend_pid() AND granted)`,
		"{next token}", `INSERT INTO {table} AS t (name, fence, valid_until) VALUES (:name, {clock}, {now})
			ON CONFLICT (name) DO UPDATE SET fence = GREATEST(t.fence + 1, {clock})`,
	),
	// An insert that finds the row locks it like an update,
	// otherwise two transactions could wait for each other.
	MySQL: strings.NewReplacer(
		"{now}", "{mysql now}",
		"{later}", "{mysql now} + INTERVAL :lease MICROSECOND",
		// TIMESTAMPDIFF is NULL for a date with zeros, such as '0000-00-00', which a comparison knows.
		"{left}", `COALESCE(TIMESTAMPDIFF(MICROSECOND, {mysql now}, {until}),
			CASE WHEN {until} <= {mysql now} THEN -1 WHEN {until} > {mysql now} THEN 3153600000000000 END)`,
		"{clock}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		"{unless there}", "ON DUPLICATE KEY UPDATE name = name",
		"{acquire}", `UPDATE {table} JOIN ({free row}) AS free USING (name)
			SET owner = :owner, fence = :next, valid_until = {later}
			WHERE fence = :seen`,
		"{for share}", "LOCK IN SHARE MODE",
		// The second column is compared after the first one was set.
		"{acquire key}", `INSERT INTO {table} ({name}, {holder}, {until}) VALUES (:name, :owner, {later})
			ON DUPLICATE KEY UPDATE {holder} = IF({until} <= {now}, VALUES({holder}), {holder}),
			{until} = IF({is owner}, VALUES({until}), {until})`,
		// As a number, the holder of another program may be equal. CHAR may have spaces at the end.
		"{is owner}", "RTRIM(CAST({holder} AS CHAR)) = :owner",
		// GET_LOCK answers NULL after an error. For the others NULL means that there is no such lock.
		"{try session}", "SELECT GET_LOCK(:key, 0)",
		"{await session}", "SELECT GET_LOCK(:key, :wait)",
		"{release session}", "SELECT COALESCE(RELEASE_LOCK(:key), 0)",
		"{takes writes}", "SELECT CAST(@@read_only AS CHAR) IN ('0', 'OFF')", // later versions have words
		"{has session}", "SELECT COALESCE(IS_USED_LOCK(:key) = CONNECTION_ID(), 0)",
		"{next token}", `INSERT INTO {table} (name, fence, valid_until) VALUES (:name, {clock}, {now})
			ON DUPLICATE KEY UPDATE fence = GREATEST(fence + 1, {clock})`,
	),
}

// The statements. A parameter is written as :name.
const (
	readText   = `SELECT fence, owner, {left}, {clock} FROM {table} WHERE name = :name`
	insertText = `INSERT INTO {table} (name, fence, valid_until) VALUES (:name, 0, {now}) {unless there}`
	// An acquire does not wait for a transaction that has locked the row. LIMIT keeps MySQL 8 from merging
	// the query into the UPDATE, which may not read its own table.
	acquireText = `{acquire}`
	freeRowText = `SELECT name FROM {table} WHERE name = :name AND fence = :seen
		AND (owner IS NULL OR valid_until <= {now}) LIMIT 1 FOR UPDATE SKIP LOCKED`
	renewText = `UPDATE {table} SET valid_until = {later}
		WHERE name = :name AND owner = :owner AND fence = :fence AND valid_until > {now}`
	releaseText = `UPDATE {table} SET owner = NULL, valid_until = {now}
		WHERE name = :name AND owner = :owner AND fence = :fence`
	// After it an acquire that was sent before changes nothing, whenever it arrives.
	undoText = `UPDATE {table} SET owner = NULL, fence = :next, valid_until = {now}
		WHERE name = :name AND (fence = :seen OR fence = :next AND owner = :owner)`
	takeText  = `UPDATE {table} SET owner = NULL, fence = :next, valid_until = {now} WHERE name = :name`
	guardText = `SELECT fence FROM {table} WHERE name = :name AND fence = :fence AND owner IS NOT NULL`
	// Notifications are sent when the transaction is committed.
	notifyText = `WITH changed AS (%s RETURNING name) SELECT pg_notify(:channel, name) FROM changed`
)

// values are the parameters of statements.
type values struct {
	name, owner       string
	fence, seen, next int64
	lease             time.Duration
	channel           string
	key               any           // of a session lock
	wait              time.Duration // whole seconds
}

var parameter = regexp.MustCompile(`:[a-z]+`)

// statement is a statement with the order of its parameters.
type statement struct {
	text       string
	parameters []string
}

// statement returns a statement in the dialect. The names are those of its table and its columns, each
// after what stands for it.
func (d Dialect) statement(text string, names ...string) statement {
	text = fragments[d].Replace(text)
	text = strings.ReplaceAll(text, "{free row}", freeRowText)
	text = fragments[d].Replace(text) // a fragment may have others
	text = strings.NewReplacer(names...).Replace(text)
	var s statement
	s.text = parameter.ReplaceAllStringFunc(text, func(p string) string {
		s.parameters = append(s.parameters, p)
		return d.placeholder(len(s.parameters))
	})
	return s
}

func (d Dialect) placeholder(n int) string {
	if d == PostgreSQL {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

// args returns the parameters in their order.
func (s statement) args(v values) []any {
	all := map[string]any{
		":name": v.name, ":owner": v.owner, ":fence": v.fence, ":seen": v.seen, ":next": v.next,
		":lease": v.lease.Microseconds(), ":channel": v.channel,
		":key": v.key, ":wait": int64(v.wait / time.Second),
	}
	var args []any
	for _, p := range s.parameters {
		args = append(args, all[p])
	}
	return args
}
