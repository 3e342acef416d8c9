package interop

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// resources are what the locks protect. They check by themselves which users are in them together.
type resources struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	all   map[string]*resource
	conns map[net.Conn]struct{} // nil once closed
}

// resource has the users that are in it now.
type resource struct {
	enough   func(*resource) bool
	stay     time.Duration // how long each user is in it, at least
	inside   []user
	last     user           // the last one that entered
	entries  map[string]int // by language
	handOver int            // entries after a user of another language
	overlaps []string
}

// user is a user of a resource: its language, and its role.
type user struct{ language, role string }

func startResources(t testing.TB) *resources {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &resources{listener: listener, all: map[string]*resource{}, conns: map[net.Conn]struct{}{}}
	r.serving.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *resources) addr() string { return r.listener.Addr().String() }

func (r *resources) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		open := r.conns != nil
		if open {
			r.conns[conn] = struct{}{}
			r.serving.Go(func() { r.serve(conn) })
		}
		r.mu.Unlock()
		if !open {
			conn.Close()
		}
	}
}

func (r *resources) close() {
	r.listener.Close()
	r.mu.Lock()
	for conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.serving.Wait()
}

// open adds a resource. Its users end when enough reports true.
func (r *resources) open(name string, enough func(*resource) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[name] = &resource{enough: enough, entries: map[string]int{}}
}

// inspect calls at with a resource.
func (r *resources) inspect(name string, at func(*resource)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at(r.all[name])
}

// serve handles the connection of one user, which has left when the connection ends.
func (r *resources) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return
	}
	words := strings.Fields(lines.Text())
	if len(words) != 3 {
		return
	}
	name, self := words[0], user{language: words[2], role: words[1]}
	in := false
	answer := "hello"
	for {
		if _, err := fmt.Fprintln(conn, answer); err != nil || !lines.Scan() {
			break
		}
		var stay time.Duration
		r.inspect(name, func(res *resource) {
			if in = lines.Text() == "enter"; in {
				answer, stay = res.enter(self), res.stay
			} else {
				answer = res.leave(self)
			}
		})
		time.Sleep(stay) // the workload
	}
	if in {
		r.inspect(name, func(res *resource) { res.leave(self) })
	}
}

func (r *resource) enter(u user) string {
	for _, other := range r.inside {
		if !compatible(u, other, len(r.inside)) {
			r.overlaps = append(r.overlaps, fmt.Sprintf("%v entered while %v were inside", u, r.inside))
			break
		}
	}
	r.inside = append(r.inside, u)
	r.entries[u.language]++
	if r.last.language != "" && r.last.language != u.language {
		r.handOver++
	}
	r.last = u
	if r.enough(r) {
		return "enough"
	}
	return "in"
}

// total returns the number of entries.
func (r *resource) total() (n int) {
	for _, entries := range r.entries {
		n += entries
	}
	return n
}

// compatible reports whether two users may be inside at the same time. inside is the number of
// users.
func compatible(u, other user, inside int) bool {
	if u.role != other.role {
		return false
	}
	if n, limited := strings.CutPrefix(u.role, "one-of-"); limited {
		limit, err := strconv.Atoi(n)
		return err == nil && inside < limit
	}
	return u.role == "shared"
}

func (r *resource) leave(u user) string {
	for i, other := range r.inside {
		if other == u {
			r.inside = append(r.inside[:i:i], r.inside[i+1:]...)
			return "out"
		}
	}
	return "out already"
}

// usage is a connection to a resource.
type usage struct {
	conn  net.Conn
	lines *bufio.Scanner
}

func use(addr, name, role, language string) (*usage, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	u := &usage{conn, bufio.NewScanner(conn)}
	_, err = u.ask(name + " " + role + " " + language)
	return u, err
}

func (u *usage) enter() (enough bool, err error) {
	answer, err := u.ask("enter")
	return answer == "enough", err
}

func (u *usage) leave() error {
	_, err := u.ask("leave")
	return err
}

func (u *usage) close() { u.conn.Close() }

func (u *usage) ask(line string) (string, error) {
	if _, err := fmt.Fprintln(u.conn, line); err != nil {
		return "", err
	}
	if !u.lines.Scan() {
		return "", errors.Join(errors.New("the resource has closed the connection"), u.lines.Err())
	}
	return u.lines.Text(), nil
}

// TestResourceSeesOverlaps checks that a resource finds overlaps. Otherwise every lock would pass.
func TestResourceSeesOverlaps(t *testing.T) {
	all := startResources(t)
	for name, test := range map[string]struct {
		roles    []string
		overlaps int
	}{
		"two alone":               {[]string{"alone", "alone"}, 1},
		"one beside those shared": {[]string{"shared", "shared", "alone"}, 1},
		"shared beside one alone": {[]string{"alone", "shared"}, 1},
		"shared":                  {[]string{"shared", "shared", "shared"}, 0},
		"as many as there may be": {[]string{"one-of-2", "one-of-2"}, 0},
		"one more":                {[]string{"one-of-2", "one-of-2", "one-of-2"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			name := strings.ReplaceAll(name, " ", "-")
			all.open(name, func(*resource) bool { return false })
			for _, role := range test.roles {
				uses, err := use(all.addr(), name, role, "me")
				require.NoError(t, err)
				defer uses.close()
				_, err = uses.enter()
				require.NoError(t, err)
			}
			all.inspect(name, func(r *resource) { require.Len(t, r.overlaps, test.overlaps) })
		})
	}
}
