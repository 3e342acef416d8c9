package guide

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/mutex"
)

// fragment guarantees-token
func save(ctx context.Context, db *sql.DB, hold *recipes.Hold, id, state string) error {
	res, err := db.ExecContext(ctx, `UPDATE jobs SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
		state, hold.Token(), id)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return fence.ErrStale // a later holder has written, or there is no such job
	}
	return err
}

// end

// fragment guarantees-guard
func publish(ctx context.Context, hold *recipes.Hold, config []byte) error {
	_, err := hold.Guard(ctx, framework.SetOp("/service/config", config, -1))
	return err // ErrNodeDeleted, ErrSessionLost: the lock is lost
}

// end

func TestTokenAndGuardRefuseAFormerHolder(t *testing.T) {
	ctx, client := connected(t)
	_, err := client.Create(ctx, "/service/config", nil, framework.Parents())
	require.NoError(t, err)
	mu, err := mutex.New(client, "/locks/orders")
	require.NoError(t, err)
	db := sql.OpenDB(&row{})
	defer func() { require.NoError(t, db.Close()) }()

	former, err := mu.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, save(ctx, db, former, "7", "started"))
	require.NoError(t, publish(ctx, former, []byte("a")))
	require.NoError(t, former.Release())

	later, err := mu.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, save(ctx, db, later, "7", "done"))
	require.ErrorIs(t, save(ctx, db, former, "7", "late"), fence.ErrStale)
	require.Error(t, publish(ctx, former, []byte("late")))
	data, _, err := client.Get(ctx, "/service/config")
	require.NoError(t, err)
	require.Equal(t, "a", string(data))
	require.NoError(t, later.Release())
}

// row is a database with one row. It does what the statement of save says.
type row struct{ fence int64 }

func (r *row) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r *row) Driver() driver.Driver                        { return nil }
func (r *row) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (r *row) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (r *row) Close() error                                 { return nil }

func (r *row) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	token := args[1].Value.(int64)
	if r.fence > token {
		return driver.RowsAffected(0), nil
	}
	r.fence = token
	return driver.RowsAffected(1), nil
}
