package sqllock_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/internal/port"
)

// One of two hosts is down. The other one answers that it takes no writes, as a replica that is about to be promoted,
// and then it takes them. Close releases the lock.
func TestCloseDuringAPromotion(t *testing.T) {
	for name, dead := range map[string]bool{"one host": false, "the other host is down": true} {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.PostgreSQL).site(t)
			hosts := one.addr
			if dead {
				kept, err := port.New()
				require.NoError(t, err)
				defer kept.Close()
				hosts = kept.Addr() + "," + one.addr
			}
			config, err := pgx.ParseConfig("postgres://docent@" + hosts + "/" + one.name +
				"?sslmode=disable&target_session_attrs=read-write")
			require.NoError(t, err)
			promoted := make(chan error, 1)
			promote := sync.OnceFunc(func() {
				_, err := one.db.Exec("SET default_transaction_read_only = off; ALTER DATABASE " + one.name +
					" RESET default_transaction_read_only")
				promoted <- err
			})
			validate := config.ValidateConnect
			config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
				err := validate(ctx, conn)
				if err != nil { // it takes no writes
					promote()
				}
				return err
			}
			db := sql.OpenDB(stdlib.GetConnector(*config))
			defer db.Close()
			// Each statement has a new connection, as after the end of the old primary.
			db.SetMaxIdleConns(-1)
			c, err := sqllock.NewClient(db, sqllock.PostgreSQL, sqllock.WithTTL(time.Hour))
			require.NoError(t, err)
			mustAcquire(t, lockOf(t, c, "lock"))
			one.exec(t, "ALTER DATABASE "+one.name+" SET default_transaction_read_only = on")
			require.NoError(t, c.Close())
			require.Len(t, promoted, 1, "no connection was refused")
			require.NoError(t, <-promoted)
			requireReleased(t, one.db)
		})
	}
}
