package sqllock_test

import (
	"context"
	"database/sql"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/recipes"
)

// This function is on the page README.md.
var _ = withLock

// fragment sql-lock
func withLock(ctx context.Context, db *sql.DB, ship func(context.Context, int64) error) error {
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL) // or sqllock.MySQL
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := sqllock.New(client, "orders/7")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return ship(ctx, hold.Token()) // ctx ends with the hold
	})
}

// end
