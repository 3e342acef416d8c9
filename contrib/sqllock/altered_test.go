package sqllock

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// alteringDB cuts the holder of the row of a KeyLock.
type alteringDB struct {
	scripted
	holder   *string // of the row; "": there is none
	deleting func()  // is called before each DELETE
}

func (d alteringDB) Connect(context.Context) (driver.Conn, error) { return d, nil }

func (d alteringDB) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(text, "DELETE") {
		d.deleting()
	}
	if err := ctx.Err(); err != nil { // it does not arrive
		return nil, err
	}
	switch {
	case strings.HasPrefix(text, "INSERT"):
		holder := args[1].Value.(string)
		*d.holder = holder[:len(holder)-3]
		return driver.RowsAffected(1), nil
	case strings.HasPrefix(text, "DELETE") && args[1].Value == *d.holder:
		*d.holder = ""
		return driver.RowsAffected(1), nil
	}
	return driver.RowsAffected(0), nil
}

func (d alteringDB) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if *d.holder == "" {
		return &oneRow{row: nil}, nil
	}
	return &oneRow{row: []driver.Value{*d.holder, int64(DefaultTTL / time.Microsecond)}}, nil
}

// The context of an acquire ends when the row is deleted whose holder the column has altered. No row is left.
func TestAlteredHolderWhenTheContextEnds(t *testing.T) {
	var holder string
	ctx, cancel := context.WithCancel(t.Context())
	d := alteringDB{holder: &holder, deleting: cancel}
	onDriver(t, d, func(t *testing.T, c *Client) {
		lock, err := NewKeyLock(c, "lock")
		assert.NoError(t, err)
		_, err = lock.TryAcquire(ctx)
		assert.Error(t, err)
		time.Sleep(time.Second) // what is done in the background
		assert.Empty(t, holder, "the row is left")
	})
}
