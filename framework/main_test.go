package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

func TestMain(m *testing.M) { testzk.Main(m) }

// soon limits operations that must not wait for anything. It is less than the time in which a
// session with a timeout of a minute is lost by silence.
const soon = 30 * time.Second

// longSession returns an option for clients with a session that must not end by itself during a
// test.
func longSession() framework.Option { return framework.WithSessionTimeout(time.Minute) }

// proxied returns a connected client that reaches the servers only through a proxy.
func proxied(t testing.TB, opts ...framework.Option) (*framework.Client, *proxy.Proxy) {
	t.Helper()
	p := testzk.Proxy(t)
	return testzk.Connected(t, p.Addr(), opts...), p
}

// session returns the current session of a client.
func session(t testing.TB, c *framework.Client) *framework.Session {
	t.Helper()
	s, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	return s
}

// parent creates a parent for the nodes of a test and returns its path. All servers have the node.
func parent(t testing.TB) string {
	t.Helper()
	path := testzk.Path(t)
	_, err := testzk.Connected(t, testzk.Connect()).Create(testzk.Context(t), path, nil, framework.Parents())
	require.NoError(t, err)
	testzk.Everywhere(t)
	return path
}

// failed checks the outcome of an error and what the error matches.
func failed(t testing.TB, err error, outcome framework.Outcome, matches ...error) {
	t.Helper()
	require.Error(t, err)
	for _, want := range matches {
		require.ErrorIs(t, err, want)
	}
	require.Equal(t, outcome, framework.OutcomeOf(err), "outcome of %q", err)
}

// closes waits for a channel to be closed. It waits for less time than the interval at which
// watches are checked.
func closes(t testing.TB, c <-chan struct{}, message string, args ...any) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testzk.Patience * 2 / 3):
		require.FailNowf(t, "timed out waiting for "+message, "", args...)
	}
}

// within fails unless fn returns soon.
func within(t testing.TB, what string, fn func()) {
	t.Helper()
	start := time.Now()
	fn()
	require.Less(t, time.Since(start), soon, "%s took too long", what)
}

// observe reads a node after a sync, so it returns committed data whatever server the observer is
// connected to.
func observe(t testing.TB, o *testzk.Conn, path string) (data []byte, stat *zk.Stat, there bool) {
	t.Helper()
	data, stat, err := o.Get(path)
	if err != zk.ErrNoNode {
		require.NoError(t, err)
	}
	return data, stat, err == nil
}

// children lists the children of a node after a sync.
func children(t testing.TB, o *testzk.Conn, path string) []string {
	t.Helper()
	names, _, err := o.Children(path)
	require.NoError(t, err)
	return names
}

// trace records the changes of the state of a client.
type trace struct {
	mu  sync.Mutex
	all []framework.StateChange
}

// traced returns a client and a record of all changes of its state.
func traced(t testing.TB, opts ...framework.Option) (*framework.Client, *proxy.Proxy, *trace) {
	t.Helper()
	p := testzk.Proxy(t)
	require.NoError(t, p.Refuse(true))
	c := testzk.Client(t, p.Addr(), opts...)
	r := &trace{}
	c.Listen(r.add)
	require.NoError(t, p.Refuse(false))
	r.await(t, framework.Connected)
	return c, p, r
}

func (r *trace) add(c framework.StateChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

func (r *trace) changes() []framework.StateChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]framework.StateChange(nil), r.all...)
}

func (r *trace) states() (states []framework.State) {
	for _, c := range r.changes() {
		states = append(states, c.State)
	}
	return states
}

// await waits until the trace is as long as want and compares both.
func (r *trace) await(t testing.TB, want ...framework.State) {
	t.Helper()
	testzk.Eventually(t, func() bool {
		return len(r.states()) >= len(want)
	}, "no further change of state; want %v", want)
	require.Equal(t, want, r.states())
}

// awaitBut is await that skips one state.
func (r *trace) awaitBut(t testing.TB, but framework.State, want ...framework.State) {
	t.Helper()
	others := func() []framework.State {
		return slices.DeleteFunc(r.states(), func(s framework.State) bool { return s == but })
	}
	testzk.Eventually(t, func() bool {
		return len(others()) >= len(want)
	}, "no further change of state; want %v", want)
	require.Equal(t, want, others())
}

// expire ends a session on the servers.
func expire(t testing.TB, id int64) {
	t.Helper()
	if srv := testzk.InProcess(); srv != nil {
		s, found := srv.Session(id)
		require.True(t, found, "no session %#x", id)
		require.NoError(t, s.Expire())
		return
	}
	testzk.Eventually(t, func() bool { return endSession(t, id) }, "session %#x does not end", id)
}

// endSession closes a session by its id and password. Real servers derive the password from the id.
// It returns false if the client has reconnected to the session in between.
func endSession(t testing.TB, id int64) bool {
	t.Helper()
	server, _, _ := strings.Cut(testzk.Connect(), ",")
	conn, err := net.Dial("tcp", server)
	require.NoError(t, err)
	defer conn.Close()
	request := append(make([]byte, 12), 0, 0, 0x10, 0) // version, zxid, timeout
	request = binary.BigEndian.AppendUint64(request, uint64(id))
	request = append(append(request, 0, 0, 0, 16), password(id)...)
	_, err = conn.Write(framed(request))
	require.NoError(t, err)
	_, err = conn.Write(framed([]byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5}))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(soon)))
	answer, _ := io.ReadAll(conn)
	if len(answer) < 20 || int64(binary.BigEndian.Uint64(answer[12:])) != id {
		return len(answer) >= 20 // zeros: there is no such session
	}
	return len(answer) >= 4+36+4+16
}

func framed(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// password returns the password of a session as java.util.Random generates it.
func password(id int64) []byte {
	const mask = 1<<48 - 1
	seed := (uint64(id^0xb3415c00) ^ 0x5deece66d) & mask
	var b []byte
	for range 4 {
		seed = (seed*0x5deece66d + 0xb) & mask
		b = binary.LittleEndian.AppendUint32(b, uint32(seed>>16))
	}
	return b
}

// operations are the operations common to clients and sessions.
type operations interface {
	Create(ctx context.Context, path string, data []byte, opts ...framework.CreateOption) (string, error)
	CreateResult(
		ctx context.Context, path string, data []byte, opts ...framework.CreateOption) (framework.Result, error)
	CreateContainers(ctx context.Context, path string) error
	Get(ctx context.Context, path string) ([]byte, *zk.Stat, error)
	Exists(ctx context.Context, path string) (*zk.Stat, error)
	Children(ctx context.Context, path string) ([]string, *zk.Stat, error)
	GetW(ctx context.Context, path string) ([]byte, *zk.Stat, *framework.Watch, error)
	ExistsW(ctx context.Context, path string) (*zk.Stat, *framework.Watch, error)
	ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, *framework.Watch, error)
	Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error)
	Delete(ctx context.Context, path string, version int32) error
	DeleteGuaranteed(ctx context.Context, paths ...string) error
	DeleteRecursive(ctx context.Context, path string) error
	Sync(ctx context.Context, path string) error
	GetACL(ctx context.Context, path string) ([]zk.ACL, *zk.Stat, error)
	SetACL(ctx context.Context, path string, acl []zk.ACL, version int32) (*zk.Stat, error)
	Multi(ctx context.Context, list ...framework.Op) ([]framework.Result, error)
	Ephemerals(ctx context.Context, prefix string) ([]string, error)
	CountAll(ctx context.Context, path string) (int, error)
	MultiRead(ctx context.Context, list ...framework.ReadOp) ([]framework.ReadResult, error)
}

// each has all operations.
var each = map[string]func(ctx context.Context, o operations, path string) error{
	"create": func(ctx context.Context, o operations, path string) error {
		_, err := o.Create(ctx, path, nil)
		return err
	},
	"create ephemeral": func(ctx context.Context, o operations, path string) error {
		_, err := o.Create(ctx, path, nil, framework.Ephemeral())
		return err
	},
	"create protected": func(ctx context.Context, o operations, path string) error {
		_, err := o.Create(ctx, path, nil, framework.Protected())
		return err
	},
	"create container": func(ctx context.Context, o operations, path string) error {
		_, err := o.Create(ctx, path, nil, framework.Container(), framework.Parents())
		return err
	},
	"create or set": func(ctx context.Context, o operations, path string) error {
		_, err := o.Create(ctx, path, nil, framework.OrSet())
		return err
	},
	"create containers": func(ctx context.Context, o operations, path string) error {
		return o.CreateContainers(ctx, path)
	},
	"get": func(ctx context.Context, o operations, path string) error {
		_, _, err := o.Get(ctx, path)
		return err
	},
	"exists": func(ctx context.Context, o operations, path string) error {
		_, err := o.Exists(ctx, path)
		return err
	},
	"children": func(ctx context.Context, o operations, path string) error {
		_, _, err := o.Children(ctx, path)
		return err
	},
	"get watched": func(ctx context.Context, o operations, path string) error {
		_, _, _, err := o.GetW(ctx, path)
		return err
	},
	"exists watched": func(ctx context.Context, o operations, path string) error {
		_, _, err := o.ExistsW(ctx, path)
		return err
	},
	"children watched": func(ctx context.Context, o operations, path string) error {
		_, _, _, err := o.ChildrenW(ctx, path)
		return err
	},
	"set": func(ctx context.Context, o operations, path string) error {
		_, err := o.Set(ctx, path, nil, -1)
		return err
	},
	"delete": func(ctx context.Context, o operations, path string) error { return o.Delete(ctx, path, -1) },
	"delete guaranteed": func(ctx context.Context, o operations, path string) error {
		return o.DeleteGuaranteed(ctx, path)
	},
	"delete recursively": func(ctx context.Context, o operations, path string) error {
		return o.DeleteRecursive(ctx, path)
	},
	"sync": func(ctx context.Context, o operations, path string) error { return o.Sync(ctx, path) },
	"get ACL": func(ctx context.Context, o operations, path string) error {
		_, _, err := o.GetACL(ctx, path)
		return err
	},
	"set ACL": func(ctx context.Context, o operations, path string) error {
		_, err := o.SetACL(ctx, path, zk.WorldACL(zk.PermAll), -1)
		return err
	},
	"list ephemerals": func(ctx context.Context, o operations, path string) error {
		_, err := o.Ephemerals(ctx, path)
		return err
	},
	"count": func(ctx context.Context, o operations, path string) error {
		_, err := o.CountAll(ctx, path)
		return err
	},
	"multi read": func(ctx context.Context, o operations, path string) error {
		_, err := o.MultiRead(ctx, framework.GetOp(path), framework.ChildrenOp(path))
		return err
	},
	"multi create": multi(func(path string) framework.Op {
		return framework.CreateOp(path, nil, framework.Ephemeral())
	}),
	"multi set":    multi(func(path string) framework.Op { return framework.SetOp(path, nil, -1) }),
	"multi delete": multi(func(path string) framework.Op { return framework.DeleteOp(path, -1) }),
	"multi check":  multi(func(path string) framework.Op { return framework.CheckOp(path, -1) }),
}

func multi(op func(path string) framework.Op) func(context.Context, operations, string) error {
	return func(ctx context.Context, o operations, path string) error {
		_, err := o.Multi(ctx, op(path))
		return err
	}
}
