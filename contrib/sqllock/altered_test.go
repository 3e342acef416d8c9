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

	"github.com/docent-zk/docent/recipes"
)

// alteringDB cuts the holder of the row of a KeyLock.
type alteringDB struct {
	scripted
	mu     *sync.Mutex
	holder *string                   // of the row; "": there is none
	at     func(moment string) error // is called before and after statements; after one it returns what is answered
}

func (d alteringDB) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d alteringDB) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	statement, _, _ := strings.Cut(text, " ")
	_ = d.at("before " + statement)
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
	return changed, d.at("after " + statement)
}

func (d alteringDB) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *d.holder != "" {
		_ = d.at("before SELECT of the row")
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
	acquires := map[string]func(*KeyLock, context.Context) (*recipes.Hold, error){
		"TryAcquire": (*KeyLock).TryAcquire, "Acquire": (*KeyLock).Acquire,
	}
	ends := func(cancel func()) error { cancel(); return context.Canceled }
	isLost := func(func()) error { return errors.New("the connection is lost") }
	for name, row := range map[string]struct {
		moment  string
		happens func(cancel func()) error // once
	}{
		"the context ends in the insert":       {"after INSERT", ends},
		"the context ends before the read":     {"before SELECT of the row", ends},
		"the context ends before the deletion": {"before DELETE", ends},
		"the answer is lost":                   {"after INSERT", isLost},
	} {
		for how, acquire := range acquires {
			t.Run(name+" "+how, func(t *testing.T) {
				var holder string
				var cancel func()
				happened := false
				d := alteringDB{mu: &sync.Mutex{}, holder: &holder, at: func(moment string) error {
					if moment != row.moment || happened {
						return nil
					}
					happened = true
					return row.happens(cancel)
				}}
				onDriver(t, d, func(t *testing.T, c *Client) {
					var ctx context.Context
					ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lock, err := NewKeyLock(c, "lock")
					assert.NoError(t, err)
					begun := time.Now()
					_, err = acquire(lock, ctx)
					assert.Error(t, err)
					if ctx.Err() == nil {
						assert.ErrorContains(t, err, "the column has made")
					}
					assert.Less(t, time.Since(begun), time.Second)
					time.Sleep(time.Second) // what is done in the background
					d.mu.Lock()
					defer d.mu.Unlock()
					assert.True(t, happened)
					assert.Empty(t, holder, "the row is left")
				})
			})
		}
	}
}
