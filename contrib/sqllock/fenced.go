package sqllock

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-zk/docent/fence"
)

// FencedUpdate returns an UPDATE that late requests of former holders do not apply. It changes the
// columns set of the rows with the given key. They need a column for the token, such as
//
//	fence bigint NOT NULL DEFAULT 0
//
// and every write of them is such a statement. Its arguments are the values of set, the token of the
// hold, the values of key, and the token again. Pass the result to CheckFenced:
//
//	text, err := sqllock.PostgreSQL.FencedUpdate("accounts", "fence", []string{"balance"}, []string{"id"})
//	// UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $4
//	...
//	result, err := db.ExecContext(ctx, text, balance, hold.Token(), id, hold.Token())
//
// FencedUpdate returns an error if set or key is empty, or if a name is not one of a table or of a
// column. Names have ASCII letters, digits and _ only.
func (d Dialect) FencedUpdate(table, fence string, set, key []string) (string, error) {
	if err := d.checkFenced(table, fence, set, key); err != nil {
		return "", fmt.Errorf("sqllock: fenced update: %w", err)
	}
	n := 0
	compare := func(columns []string, operator string) []string {
		var all []string
		for _, column := range columns {
			n++
			all = append(all, column+" "+operator+" "+d.placeholder(n))
		}
		return all
	}
	changes := strings.Join(append(compare(set, "="), compare([]string{fence}, "=")...), ", ")
	conditions := strings.Join(append(compare(key, "="), compare([]string{fence}, "<=")...), " AND ")
	return "UPDATE " + table + " SET " + changes + " WHERE " + conditions, nil
}

func (d Dialect) checkFenced(table, fence string, set, key []string) error {
	if err := d.check(); err != nil {
		return err
	}
	if len(set) == 0 || len(key) == 0 {
		return errors.New("set or key is empty")
	}
	if err := checkTable(table); err != nil {
		return err
	}
	return checkColumns(append(append([]string{fence}, set...), key...)...)
}

func checkColumns(names ...string) error {
	for _, name := range names {
		if !identifier.MatchString(name) {
			return fmt.Errorf("%q is not the name of a column", name)
		}
	}
	return nil
}

// CheckFenced returns nil if a statement of Dialect.FencedUpdate was applied, and fence.ErrStale if it was
// refused because it has changed no row: there is no such row, or it has a larger token. Which of these
// it is, a SELECT tells. With MySQL a row that has these values already counts as not changed, unless the
// driver counts found rows: clientFoundRows=true.
func CheckFenced(result sql.Result) error {
	if result == nil {
		return errors.New("sqllock: the result is nil")
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%w: no row was changed", fence.ErrStale)
	}
	return nil
}
