package sqllock_test

import (
	"database/sql"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/contrib/sqllock"
)

// One of two hosts is down. The other one answers that it takes no writes, as a replica that is about to be promoted,
// and a moment later it takes them. Close releases the lock.
func TestCloseDuringAPromotion(t *testing.T) {
	for name, dead := range map[string]bool{"one host": false, "the other host is down": true} {
		t.Run(name, func(t *testing.T) {
			one := serverOf(t, sqllock.PostgreSQL).site(t)
			hosts := one.addr
			if dead {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				hosts = l.Addr().String() + "," + one.addr
				require.NoError(t, l.Close())
			}
			config, err := pgx.ParseConfig("postgres://docent@" + hosts + "/" + one.name +
				"?sslmode=disable&target_session_attrs=read-write")
			require.NoError(t, err)
			db := sql.OpenDB(stdlib.GetConnector(*config))
			defer db.Close()
			// Each statement has a new connection, as after the end of the old primary.
			db.SetMaxIdleConns(-1)
			c, err := sqllock.NewClient(db, sqllock.PostgreSQL) // a lease of 15 s
			require.NoError(t, err)
			mustAcquire(t, lockOf(t, c, "lock"))
			one.exec(t, "ALTER DATABASE "+one.name+" SET default_transaction_read_only = on")
			time.AfterFunc(500*time.Millisecond, func() {
				_, _ = one.db.Exec("SET default_transaction_read_only = off; ALTER DATABASE " + one.name +
					" RESET default_transaction_read_only")
			})
			require.NoError(t, c.Close())
			requireReleased(t, one.db)
		})
	}
}
