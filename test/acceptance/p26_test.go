package acceptance_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/sim"
)

// p26Case returns the name of a connection string's subtest. It has no slash, which would make it a
// subtest of another one.
func p26Case(connect string) string { return strings.ReplaceAll(connect, "/", "|") }

// p26Dials refuses the first attempt at each address, and connects all others to the server.
type p26Dials struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	want []string
	seen []string
}

func (d *p26Dials) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	if !slices.Contains(d.seen, address) {
		d.seen = append(d.seen, address)
	}
	all := len(d.seen) >= len(d.want)
	d.mu.Unlock()
	if !all {
		return nil, syscall.ECONNREFUSED
	}
	return d.dial(ctx, network, address)
}

// Connection strings with one server or several, without ports, with IPv6 addresses, spaces and a
// chroot dial all servers that they name. All nodes are below the chroot.
func TestP26_ConnectionStringsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	for connect, want := range map[string][]string{ // "/chroot" is replaced
		"zk1":                           {"zk1:2181"},
		"zk1:2182":                      {"zk1:2182"},
		"zk1,zk2:2182,zk3":              {"zk1:2181", "zk2:2182", "zk3:2181"},
		" zk1 , zk2:2182 ":              {"zk1:2181", "zk2:2182"},
		"10.0.0.1:2181":                 {"10.0.0.1:2181"},
		"[::1]":                         {"[::1]:2181"},
		"[::1]:2182":                    {"[::1]:2182"},
		"[2001:DB8:0:0:0:0:0:1]:2181":   {"[2001:db8::1]:2181"},
		"[fe80::1%eth0]:2181":           {"[fe80::1%eth0]:2181"},
		"zk1/":                          {"zk1:2181"},
		"zk1/chroot":                    {"zk1:2181"},
		"zk1:2181,[::1]:2181,zk/chroot": {"zk1:2181", "[::1]:2181", "zk:2181"},
	} {
		t.Run(p26Case(connect), func(t *testing.T) {
			anywhere(t, func(t *testing.T, in place) {
				chroot := ""
				if strings.HasSuffix(connect, "/chroot") {
					chroot = in.root + "/chroot"
				}
				dials := &p26Dials{dial: in.dial, want: want}
				c := testzk.Client(t, strings.Replace(connect, "/chroot", chroot, 1),
					framework.WithDialer(dials.DialContext))
				made, err := c.Create(testzk.Context(t), in.root+"/node", nil, framework.Parents())
				require.NoError(t, err)
				require.Equal(t, in.root+"/node", made)
				_, err = in.client(t).Exists(testzk.Context(t), chroot+in.root+"/node")
				require.NoError(t, err)
				require.ElementsMatch(t, want, dials.seen)
			})
		})
	}
}

// Invalid connection strings are refused by New with an error that has the string and the part that
// is wrong, before any dial.
func TestP26_WrongConnectionStringsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dialled := framework.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		t.Error("the client dialled")
		return nil, syscall.ECONNREFUSED
	})
	for connect, part := range map[string]string{
		"":                    "names no server",
		" ":                   "names no server",
		"/chroot":             `no server before the chroot "/chroot"`,
		"zk1,,zk2":            "server 2 of 3 is empty",
		"zk1,":                "server 2 of 2 is empty",
		":2181":               `server ":2181": no host`,
		"zk1:":                `server "zk1:": the port is empty`,
		"zk1:http":            `port "http" is not a number`,
		"zk1:0":               "port 0 is out of range",
		"zk1:65536":           "port 65536 is out of range",
		"::1":                 `server "::1": more than one colon; an IPv6 address needs brackets`,
		"::1:2181":            `server "::1:2181": more than one colon`,
		"[::1":                "the bracket is not closed",
		"[zk1]:2181":          `"zk1" in brackets is not an IPv6 address`,
		"zk1,zk1:2181":        "zk1:2181 is given twice",
		"zk1/chroot,zk2":      "only the last server can have one",
		"zk1/chroot/":         "it ends with a slash",
		"zk1//chroot":         "empty component",
		"zk1/a/../b":          `component ".."`,
		"zk://zk1:2181":       "a connection string is not a URL",
		"zk1 zk2":             `host "zk1 zk2" has the character U+0020`,
		"zk1;zk2":             `host "zk1;zk2" has the character U+003B`,
		"zk1:2181\n":          `port "2181\n" is not a number`,
		"zk1:2181/chroot\x00": "forbidden character U+0000",
	} {
		t.Run(p26Case(connect), func(t *testing.T) {
			c, err := framework.New(connect, dialled)
			require.Nil(t, c)
			require.ErrorContains(t, err, part)
			if strings.TrimSpace(connect) != "" {
				require.ErrorContains(t, err, strconv.Quote(connect))
			}
		})
	}
}

// When no server can be reached, the error of WaitConnected names each server and its last error: a
// name that does not resolve, a refused connection, one that is closed at once, one that stays
// silent.
func TestP26_WaitConnectedReportsTheErrorOfEachServer(t *testing.T) {
	t.Parallel()
	onlyInProcess(t, "it takes no server")
	sim.Once(t, 1, func(t *testing.T, _ *zktest.Server, _ *rand.Rand) {
		ends := p26Ends{}
		defer ends.close()
		c := testzk.Client(t, "unknown,refused,closed,silent", framework.WithDialer(ends.dial),
			framework.WithConnectTimeout(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := c.WaitConnected(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for server, want := range map[string]string{
			"unknown": "no such host", "refused": "connection refused", "closed": "EOF",
			"silent": "no reply to the connect request",
		} {
			_, trouble, found := strings.Cut(err.Error(), server+":2181: ")
			require.True(t, found, "%s is not in %v", server, err)
			trouble, _, _ = strings.Cut(trouble, ";")
			require.Contains(t, trouble, want)
		}
	})
}

// p26Ends are the servers' ends of connections.
type p26Ends struct {
	mu   sync.Mutex
	ends []net.Conn
}

func (e *p26Ends) dial(_ context.Context, _, address string) (net.Conn, error) {
	switch address {
	case "unknown:2181":
		return nil, &net.DNSError{Err: "no such host", Name: "unknown", IsNotFound: true}
	case "refused:2181":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, theirs)
	go func() {
		_, _ = theirs.Read(make([]byte, 1024)) // the request for a session
		if address == "closed:2181" {
			_ = theirs.Close()
		}
	}()
	return ours, nil
}

func (e *p26Ends) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, end := range e.ends {
		_ = end.Close()
	}
}

// Session.Timeout is the timeout that the servers granted and not the one that the client
// requested. The session's deadline depends on it. 100 ms becomes 400 ms here, 24 h becomes one
// minute, and 4 s stays.
func TestP26_SessionTimeoutIsTheNegotiatedOne(t *testing.T) {
	t.Parallel()
	srv := testzk.Own(t, testzk.Seldom)
	for asked, granted := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 400 * time.Millisecond,
		4 * time.Second:        4 * time.Second,
		24 * time.Hour:         time.Minute,
	} {
		t.Run(asked.String(), func(t *testing.T) {
			c := testzk.Connected(t, srv.Connect(), framework.WithSessionTimeout(asked))
			s, err := c.Session(testzk.Context(t))
			require.NoError(t, err)
			require.Equal(t, granted, s.Timeout())
			require.LessOrEqual(t, time.Until(s.ValidUntil()), granted*2/3)
		})
	}
}
