package sqllock

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// alteringDB cuts the holder of the row of a KeyLock.
type alteringDB struct {
	scripted
	mu     *sync.Mutex
	holder *string // of the row; "": there is none
	before func(statement string)
	after  func(statement string) error // returns what becomes of the answer
}

func (d alteringDB) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d alteringDB) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	statement, _, _ := strings.Cut(text, " ")
	d.before(statement)
	if err := ctx.Err(); err != nil { // it does not arrive
		return nil, err
	}
	changed := driver.RowsAffected(0)
	switch {
	case statement == "INSERT":
		holder := args[1].Value.(string)
		*d.holder = holder[:len(holder)-3]
		changed = 1
	case statement == "DELETE" && args[1].Value == *d.holder:
		*d.holder = ""
		changed = 1
	}
	return changed, d.after(statement)
}

func (d alteringDB) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *d.holder != "" {
		d.before("SELECT of the row")
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case *d.holder == "":
		return &oneRow{row: nil}, nil
	}
	return &oneRow{row: []driver.Value{*d.holder, int64(DefaultTTL / time.Microsecond)}}, nil
}

// The column of a KeyLock alters the holder, and something else goes wrong. No row is left.
func TestAlteredHolderLeavesNoRow(t *testing.T) {
	acquires := map[string]func(*KeyLock, context.Context) error{
		"TryAcquire": func(l *KeyLock, ctx context.Context) error { _, err := l.TryAcquire(ctx); return err },
		"Acquire":    func(l *KeyLock, ctx context.Context) error { _, err := l.Acquire(ctx); return err },
	}
	for name, ends := range map[string]string{
		"the context ends in the insert":       "INSERT",
		"the context ends before the read":     "SELECT of the row",
		"the context ends before the deletion": "DELETE",
		"the answer is lost":                   "",
	} {
		for how, acquire := range acquires {
			t.Run(name+" "+how, func(t *testing.T) {
				var holder string
				cancel, lost := func() {}, ends != ""
				d := alteringDB{mu: &sync.Mutex{}, holder: &holder}
				d.before = func(statement string) {
					if statement == ends && statement != "INSERT" {
						cancel()
					}
				}
				d.after = func(statement string) error {
					switch {
					case statement != "INSERT":
						return nil
					case statement == ends:
						cancel()
						return context.Canceled
					case !lost:
						lost = true
						return errors.New("the connection is lost")
					}
					return nil
				}
				onDriver(t, d, func(t *testing.T, c *Client) {
					var ctx context.Context
					ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lock, err := NewKeyLock(c, "lock")
					assert.NoError(t, err)
					begun := time.Now()
					err = acquire(lock, ctx)
					assert.Error(t, err)
					if ctx.Err() == nil {
						assert.ErrorContains(t, err, "the column has made")
					}
					assert.Less(t, time.Since(begun), time.Second)
					time.Sleep(time.Second) // what is done in the background
					d.mu.Lock()
					defer d.mu.Unlock()
					assert.Empty(t, holder, "the row is left")
				})
			})
		}
	}
}
