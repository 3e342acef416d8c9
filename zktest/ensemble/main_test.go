package ensemble

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bound bounds every wait. It is far longer than any wait takes, so that only a hang reaches it.
const bound = time.Minute

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that no call announces.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	err := poll(timeout(t), func(context.Context) (bool, error) { return cond(), nil })
	require.NoError(t, err, what)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// client returns a connected client.
func client(t *testing.T, connect string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(connect, ","), 10*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	ctx := timeout(t)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn
			}
		case <-ctx.Done():
			require.FailNow(t, "no session")
		}
	}
}

// create creates a node. It retries while the ensemble has no leader.
func create(t *testing.T, conn *zk.Conn, path, data string) {
	t.Helper()
	eventually(t, "create "+path, func() bool {
		_, err := conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
		return err == nil || err == zk.ErrNodeExists
	})
}

// get reads the committed data, not a server's older state.
func get(t *testing.T, conn *zk.Conn, path string) (data string) {
	t.Helper()
	eventually(t, "get "+path, func() bool {
		_, err := conn.Sync(path)
		if err != nil {
			return false
		}
		bytes, _, err := conn.Get(path)
		data = string(bytes)
		return err == nil
	})
	return data
}

// fakeT records the calls of a test.
type fakeT struct {
	failed   bool
	logs     []string
	fatals   []string
	cleanups []func()
}

func (f *fakeT) Helper()                   {}
func (f *fakeT) Name() string              { return "TestFake" }
func (f *fakeT) Cleanup(fn func())         { f.cleanups = append(f.cleanups, fn) }
func (f *fakeT) Failed() bool              { return f.failed }
func (f *fakeT) Logf(s string, a ...any)   { f.logs = append(f.logs, fmt.Sprintf(s, a...)) }
func (f *fakeT) Errorf(s string, a ...any) { f.fatals = append(f.fatals, fmt.Sprintf(s, a...)) }
func (f *fakeT) Fatalf(s string, a ...any) { f.fatals = append(f.fatals, fmt.Sprintf(s, a...)) }
