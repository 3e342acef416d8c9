package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/docent-zk/docent/contrib/sqllock"
	"github.com/docent-zk/docent/fence"
	"github.com/docent-zk/docent/recipes"
)

// exampleDB returns a database, which a real program opens with sql.Open.
func exampleDB() *sql.DB {
	s, err := servers[sqllock.PostgreSQL]()
	if err != nil {
		log.Fatal(err)
	}
	db, err := s.open(s.addr, "")
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func Example() {
	db := exampleDB() // sql.Open("pgx", "postgres://...")
	defer db.Close()
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.CreateTable(ctx); err != nil {
		log.Fatal(err)
	}
	lock, err := sqllock.New(client, "orders/7")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		_, err := lock.TryAcquire(ctx)
		fmt.Println(err)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: acquire orders/7: recipes: not acquired
}

// The data is in the database of the lock, so a transaction needs no lease.
func ExampleLock_InTx() {
	db := exampleDB()
	defer db.Close()
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.CreateTable(ctx); err != nil {
		log.Fatal(err)
	}
	lock, err := sqllock.New(client, "orders/8")
	if err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := lock.InTx(ctx, tx); err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryAcquire(ctx)
	fmt.Println(err)
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	hold, err := lock.TryAcquire(ctx)
	fmt.Println(err)
	if err := hold.Release(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// acquire orders/8: recipes: not acquired
	// <nil>
}

func ExampleDialect_FencedUpdate() {
	text, err := sqllock.PostgreSQL.FencedUpdate("accounts", "fence", []string{"owner", "balance"}, []string{"id"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output: UPDATE accounts SET owner = $1, balance = $2, fence = $3 WHERE id = $4 AND fence <= $5
}

// A late write of a former holder is refused.
func ExampleCheckFenced() {
	db := exampleDB()
	defer db.Close()
	ctx := context.Background()
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance int, fence bigint NOT NULL DEFAULT 0)",
		"INSERT INTO accounts VALUES (1, 0) ON CONFLICT DO NOTHING",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			log.Fatal(err)
		}
	}
	text, err := sqllock.PostgreSQL.FencedUpdate("accounts", "fence", []string{"balance"}, []string{"id"})
	if err != nil {
		log.Fatal(err)
	}
	write := func(token int64, balance int) error {
		result, err := db.ExecContext(ctx, text, balance, token, 1, token)
		if err != nil {
			return err // not known whether it was applied
		}
		return sqllock.CheckFenced(result)
	}
	const former, holder = 7, 8 // Hold.Token
	fmt.Println(write(holder, 100))
	err = write(former, 50)
	fmt.Println(errors.Is(err, fence.ErrStale))
	// Output:
	// <nil>
	// true
}

// The lock is free as soon as the connection of a holder that has crashed ends.
func ExampleSessionLock() {
	db := exampleDB()
	defer db.Close()
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := sqllock.NewSessionLock(client, "nightly report")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context, hold *recipes.Hold) error {
		_, err := lock.TryAcquire(ctx)
		fmt.Println(err)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: acquire nightly report: recipes: not acquired
}

// Another program has inserted a row, which is its lock.
func ExampleKeyLock() {
	db := exampleDB()
	defer db.Close()
	ctx := context.Background()
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS job_lock (job varchar(64) UNIQUE, holder_id varchar(64), expires_at timestamptz)",
		"INSERT INTO job_lock VALUES ('report', 'host 7', now() + interval '1 hour')",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			log.Fatal(err)
		}
	}
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL, sqllock.WithOwner("host 8"),
		sqllock.WithKeyTable(sqllock.KeyTable{Table: "job_lock", Name: "job", Holder: "holder_id"}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := sqllock.NewKeyLock(client, "report")
	if err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryAcquire(ctx)
	fmt.Println(err)
	if _, err := db.ExecContext(ctx, "DELETE FROM job_lock WHERE holder_id = 'host 7'"); err != nil {
		log.Fatal(err)
	}
	hold, err := lock.TryAcquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hold.Release())
	// Output:
	// acquire report: recipes: not acquired
	// <nil>
}

// With pgx, a connection of the pool of database/sql receives the notifications.
func ExampleWithNotify() {
	db := exampleDB()
	defer db.Close()
	listen := func(ctx context.Context, channel string, notified func(payload string)) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Raw(func(c any) error {
			pg := c.(*stdlib.Conn).Conn()
			if _, err := pg.Exec(ctx, "LISTEN "+channel); err != nil {
				return err
			}
			for {
				notification, err := pg.WaitForNotification(ctx)
				if err != nil {
					return err // also when ctx ends; pgx has closed the connection then
				}
				notified(notification.Payload)
			}
		})
	}
	client, err := sqllock.NewClient(db, sqllock.PostgreSQL, sqllock.WithNotify("docent_locks", listen))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Close())
	// Output: <nil>
}
