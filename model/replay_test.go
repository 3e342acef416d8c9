package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/zktest"
)

// Session timeouts. Time passes only for a client that is to lose its session. The sessions of the
// others last so long that they send no heartbeats meanwhile.
const (
	shortSession = 20 * time.Minute
	longSession  = 24 * time.Hour
)

// soon bounds the virtual time that the code may take where the model takes none: pauses before a
// connection and before a request is repeated.
const soon = 30 * time.Second

// firstRetryPause is a little longer than the pause of the code before it sends a request for the second time.
// The pause doubles with each time. The pauses of all breaks of a walk are shorter than the second that a client
// waits for a deletion.
const firstRetryPause = 51 * time.Millisecond

// walk is a run of a model: states, and the steps between them.
type walk struct {
	clients int
	steps   []string // lines that begin with "state" are states
}

// parseWalk reads what SPIN prints of a walk.
func parseWalk(text string) walk {
	var w walk
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line != "timeout" { // SPIN's word for the step that only an idle model takes
			w.steps = append(w.steps, line)
		}
		if line == "the end" {
			break
		}
	}
	if len(w.steps) > 0 {
		w.clients = strings.Count(w.steps[0], "|")
	}
	return w
}

// loses reports whether a client loses its session in the walk.
func (w walk) loses(client int) bool {
	return slices.Contains(w.steps, fmt.Sprintf("client %d loses its session", client))
}

// replay is the replay of a walk.
type replay struct {
	recipe
	t       *testing.T
	srv     *zktest.Server
	walk    walk
	at      int // the step
	clients []*replayed
	nodes   []string // by their number in the model
	token   int64    // of the last hold
	begun   time.Time
}

// replayed is a client of the code.
type replayed struct {
	name     string
	gate     *gate
	client   *framework.Client
	session  *framework.Session // the present one, or the one that was lost
	former   int64              // the session that the client has lost and the servers have not expired; 0: none
	acquire  testlock.Acquire
	attempt  *testlock.Attempt
	turned   *recipes.Hold // the hold that attempt is to replace; nil: there is none
	finished bool          // in the model
	breaks   int           // of its connections
	releases atomic.Int32  // releases of holds that have not returned
}

// replayWalk does what the model did, and compares the states.
func replayWalk(t *testing.T, of recipe, w walk) {
	t.Helper()
	require.NotZero(t, w.clients)
	require.Equal(t, "the end", w.steps[len(w.steps)-1])
	synctest.Test(t, func(t *testing.T) {
		srv, err := zktest.New(zktest.WithSessionTimeouts(time.Second, longSession))
		require.NoError(t, err)
		t.Cleanup(srv.Close)
		r := &replay{recipe: of, t: t, srv: srv, walk: w, begun: time.Now()}
		r.skipFirstNumbers()
		for i := range w.clients {
			r.clients = append(r.clients, r.connect(i))
		}
		for _, c := range r.clients {
			c.gate.shut()
			c.attempt = testlock.StartUnder(t, context.Background(), c.acquire)
		}
		for ; r.at < len(w.steps); r.at++ {
			r.step(w.steps[r.at])
		}
		r.end()
	})
}

// skipFirstNumbers has the counters of the directories begin at 1: a node with the number 0 needs no list.
func (r *replay) skipFirstNumbers() {
	client := testlock.Named(r.t, r.srv, "counter")
	for _, dir := range r.dirs {
		if parent := path.Dir(dir); parent != "/" {
			_ = r.srv.Create(parent, nil) // it may exist
		}
		require.NoError(r.t, r.srv.Create(dir, nil))
		name, err := client.Create(r.t.Context(), dir+"/n-", nil, framework.Sequential())
		require.NoError(r.t, err)
		require.NoError(r.t, client.Delete(r.t.Context(), name, -1))
	}
}

func (r *replay) connect(i int) *replayed {
	c := &replayed{name: fmt.Sprintf("c%d", i)}
	c.gate = newGate(r.srv, c.name, r.dirs)
	c.gate.parallel = r.parallel
	timeout := longSession
	if r.walk.loses(i) {
		timeout = shortSession
	}
	c.client = testzk.Connected(r.t, manyServers(), framework.WithDialer(c.gate.DialContext),
		framework.WithSessionTimeout(timeout), framework.WithConnectTimeout(shortSession))
	var err error
	c.session, err = c.client.Session(r.t.Context())
	require.NoError(r.t, err)
	c.acquire = r.acquirer(r.t, c.client, i)
	return c
}

// manyServers returns more addresses than a walk has connections. The gate connects to the one server
// instead. Before each server has been tried, a client connects again without a pause.
func manyServers() string {
	var all []string
	for port := range 20 {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", port+1))
	}
	return strings.Join(all, ",")
}

// step does one step of the model, or compares the state with the model's.
func (r *replay) step(line string) {
	var c, n, s int
	var kind string
	scan := func(format string, to ...any) bool {
		_, err := fmt.Sscanf(line, format, to...)
		return err == nil
	}
	switch {
	case strings.HasPrefix(line, "state "):
		r.compare(line)
	case scan("server %d: client %d: %s %d", &s, &c, &kind, &n):
		r.clients[c].gate.forward()
		synctest.Wait()
		r.noteCreated(kind == "create")
	case scan("client %d receives %s %d", &c, &kind, &n):
		r.clients[c].gate.deliver(r.node(n))
		synctest.Wait()
		r.clients[c].gate.pass()
	case scan("connection of client %d breaks", &c):
		r.clients[c].breakConnection()
	case scan("client %d may connect", &c):
		r.admit(r.clients[c])
	case scan("client %d loses its session", &c):
		r.lose(r.clients[c])
	case scan("servers expire the lost session of client %d", &c):
		r.expire(r.clients[c])
	case scan("operator deletes node %d", &n):
		require.NoError(r.t, r.srv.Delete(r.nodes[n]))
	case scan("client %d must give up", &c):
		r.clients[c].attempt.Cancel()
	case scan("client %d must release", &c):
		r.clients[c].release(r.clients[c].hold())
	case scan("client %d must turn", &c):
		r.turn(r.t, r.clients[c])
	case scan("client %d holds node %d", &c, &n):
		r.begin(r.clients[c], n, r.ordered(c))
	case scan("client %d releases", &c), scan("client %d connects", &c), line == "the end":
	default:
		require.Fail(r.t, "unknown step", line)
	}
	synctest.Wait()
}

// noteCreated gives new nodes the next numbers of the model. One that was created in a queue must be its
// last.
func (r *replay) noteCreated(inQueue bool) {
	for _, node := range r.existing() {
		if slices.Contains(r.nodes, node) {
			continue
		}
		for _, other := range r.nodes {
			if inQueue && path.Dir(other) == path.Dir(node) {
				require.Greater(r.t, sequenceOf(node), sequenceOf(other), "the queue is in another order")
			}
		}
		r.nodes = append(r.nodes, node)
	}
}

func sequenceOf(node string) string { return node[len(node)-10:] }

// existing returns the nodes of the lock.
func (r *replay) existing() (nodes []string) {
	for _, dir := range r.dirs {
		names, err := r.srv.Children(dir)
		require.NoError(r.t, err)
		for _, name := range names {
			nodes = append(nodes, dir+"/"+name)
		}
	}
	return nodes
}

func (r *replay) admit(c *replayed) {
	want := c.session.ID()
	if c.session.Err() != nil {
		want = 0
	}
	r.eventually(func() string {
		if c.gate.admit(want) {
			return ""
		}
		return fmt.Sprintf("%s does not connect for session %x", c.name, want)
	})
	r.eventually(func() string {
		if up, _, _ := c.gate.state(r.number); up {
			return ""
		}
		return c.name + " has no connection"
	})
	if want == 0 {
		var err error
		c.session, err = c.client.Session(r.t.Context())
		require.NoError(r.t, err)
		c.gate.renew()
	}
}

// breakConnection breaks the connection. It lets the pauses pass that follow, so that all requests that are
// sent again wait for the next connection, as in the model.
func (c *replayed) breakConnection() {
	c.gate.drop()
	synctest.Wait()
	time.Sleep(firstRetryPause << c.breaks)
	c.breaks++
}

// lose has a client lose its session by its own deadline.
func (r *replay) lose(c *replayed) {
	c.former = c.session.ID()
	c.gate.loses(c.former)
	c.gate.drop()
	for range 60 {
		if c.session.Err() != nil {
			break
		}
		time.Sleep(shortSession / 60)
	}
	require.ErrorIs(r.t, c.session.Err(), framework.ErrSessionLost)
	_, there := r.srv.Session(c.former)
	require.True(r.t, there, "the servers have expired the session before its deadline")
}

// expire has the servers expire the lost session.
func (r *replay) expire(c *replayed) {
	session, there := r.srv.Session(c.former)
	require.True(r.t, there)
	require.NoError(r.t, session.Expire())
	c.gate.loses(0)
	c.gate.admit(c.former) // so that the client learns of it
}

// begin checks a hold that has begun. If it is ordered, its token is larger than those of earlier holds.
func (r *replay) begin(c *replayed, node int, ordered bool) {
	r.eventually(func() string {
		if c.attempt.Waiting() {
			return c.name + " does not hold"
		}
		return ""
	})
	hold := c.attempt.Won(r.t)
	require.NoError(r.t, hold.Err())
	require.Equal(r.t, r.nodes[node], hold.Path())
	if token := hold.Tokens()[0]; ordered {
		require.Greater(r.t, token, r.token, "the token is not larger than the last one")
		r.token = token
	}
	for _, node := range hold.Paths() {
		c.gate.hold(node)
	}
}

// hold returns the valid hold, or nil.
func (c *replayed) hold() *recipes.Hold {
	if c.turned != nil && c.turned.Err() == nil {
		return c.turned
	}
	if c.attempt.Waiting() {
		return nil
	}
	if hold, err := c.attempt.Wait(); err == nil && hold.Err() == nil {
		return hold
	}
	return nil
}

// release releases a hold in the background.
func (c *replayed) release(hold *recipes.Hold) {
	c.releases.Add(1)
	go func() {
		defer c.releases.Add(-1)
		_ = hold.Release()
	}()
}

// eventually waits in virtual time until what returns "".
func (r *replay) eventually(what func() string) {
	r.t.Helper()
	synctest.Wait()
	for begun, pause := time.Now(), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		difference := what()
		if difference == "" {
			return
		}
		if time.Since(begun) > soon {
			require.FailNow(r.t, "the code differs from the model",
				"%s\nafter these steps:\n%s", difference, r.history())
		}
		time.Sleep(pause)
		synctest.Wait()
	}
}

// history returns the steps so far, without the states.
func (r *replay) history() string {
	steps := slices.DeleteFunc(slices.Clone(r.walk.steps[:r.at]), func(line string) bool {
		return strings.HasPrefix(line, "state ")
	})
	return strings.Join(append(steps, "virtual time "+time.Since(r.begun).String()), "\n")
}

// number returns the number of a node in the model, behind a space. It returns nothing for "".
func (r *replay) number(node string) string {
	if node == "" {
		return ""
	}
	if i := slices.Index(r.nodes, node); i >= 0 {
		return fmt.Sprintf(" %d", i)
	}
	return " " + path.Base(node)
}

// node returns the node with a number in the model, "" if there is none yet.
func (r *replay) node(number int) string {
	if number >= len(r.nodes) {
		return ""
	}
	return r.nodes[number]
}

// set returns a set of nodes as the model prints it.
func (r *replay) set(nodes []string) (bits int) {
	for i, node := range r.nodes {
		if slices.Contains(nodes, node) {
			bits |= 1 << i
		}
	}
	return bits
}

var listed = regexp.MustCompile(`listedB? \d+`)

// compare compares the state of the servers and the clients with the model's.
func (r *replay) compare(line string) {
	line = listed.ReplaceAllString(line, "listed 0")  // the code's replies are not read
	line = strings.ReplaceAll(line, " rewatch 0", "") // it goes with the sync
	line = strings.ReplaceAll(line, "toomany", "taken")
	parts := strings.Split(strings.TrimPrefix(line, "state "), " | ")
	for i, c := range r.clients {
		if c.isFinished(parts[i+1]) && !c.finished {
			c.finished = true
			c.gate.unlock()
		}
	}
	if r.parallel {
		for i := range r.clients {
			parts[i+1] = inAnyOrder(parts[i+1])
		}
	}
	r.eventually(func() string {
		got := r.state(parts)
		for i := range parts {
			if got[i] != parts[i] {
				return fmt.Sprintf("the model: %s\nthe code:  %s", strings.Join(parts, " | "), strings.Join(got, " | "))
			}
		}
		return ""
	})
}

func (c *replayed) isFinished(part string) bool { return strings.Fields(part)[5] == "1" }

// state returns the state as the model prints it. Of a client that has finished in the model only its
// nodes and its hold are compared: the rest is as wanted.
func (r *replay) state(want []string) []string {
	nodes := r.existing()
	holders, watches := 0, r.watches()
	got := []string{""}
	for i, c := range r.clients {
		if c.hold() != nil {
			holders |= 1 << i
		}
		if c.finished {
			got = append(got, want[i+1])
			continue // what it still has is among the nodes
		}
		up, requests, replies := c.gate.state(r.number)
		lost := c.session.Err() != nil
		own, former := r.ephemerals(c.session.ID()), 0
		if lost {
			own = 0
		}
		if c.former != 0 {
			former = r.ephemerals(c.former)
		}
		client := fmt.Sprintf("%d %d %d %d %d 0", truth(up), own, former, r.set(watches[c.session.ID()]), truth(lost))
		for _, m := range requests {
			client += " " + withNode(m)
		}
		client += " :"
		for _, m := range replies {
			client += " " + withNode(m)
		}
		if r.parallel {
			client = inAnyOrder(client)
		}
		got = append(got, client)
	}
	got[0] = fmt.Sprintf("%d %d", r.set(nodes), holders)
	return got
}

// inAnyOrder sorts the messages of a client. Each has two words.
func inAnyOrder(client string) string {
	const before = 6 // words that are no messages
	words := strings.Fields(client)
	colon := slices.Index(words, ":")
	sorted := func(words []string) (messages []string) {
		for pair := range slices.Chunk(words, 2) {
			messages = append(messages, strings.Join(pair, " "))
		}
		slices.Sort(messages)
		return messages
	}
	all := append(slices.Clone(words[:before]), sorted(words[before:colon])...)
	return strings.Join(append(append(all, ":"), sorted(words[colon+1:])...), " ")
}

// withNode adds the 0 that the model prints where a message has no node.
func withNode(m string) string {
	if strings.Contains(m, " ") {
		return m
	}
	return m + " 0"
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ephemerals returns the lock nodes of a session.
func (r *replay) ephemerals(id int64) int {
	session, there := r.srv.Session(id)
	if !there {
		return 0
	}
	return r.set(session.Ephemerals)
}

// watches returns what each session watches, without the nodes that only a holder watches.
func (r *replay) watches() map[int64][]string {
	conn, err := r.srv.Client("operator").DialContext(r.t.Context(), "tcp", r.srv.MemAddr())
	require.NoError(r.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "wchc")
	require.NoError(r.t, err)
	all := map[int64][]string{}
	var session int64
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		line := lines.Text()
		if node, ok := strings.CutPrefix(line, "\t"); ok {
			if !r.isPrivate(session, node) {
				all[session] = append(all[session], node)
			}
			continue
		}
		_, _ = fmt.Sscanf(line, "0x%x", &session)
	}
	return all
}

func (r *replay) isPrivate(session int64, node string) bool {
	for _, c := range r.clients {
		if c.session.ID() == session {
			c.gate.mu.Lock()
			defer c.gate.mu.Unlock()
			return c.gate.private[node] || c.gate.early[node]
		}
	}
	return false
}

// end lets everything pass, and checks that nothing is left.
func (r *replay) end() {
	for _, c := range r.clients {
		c.gate.loses(0)
		c.gate.unlock()
	}
	r.eventually(func() string {
		for _, c := range r.clients {
			if c.attempt.Waiting() {
				return c.name + " still waits"
			}
			if c.releases.Load() > 0 {
				return c.name + " still releases"
			}
		}
		if nodes := r.existing(); len(nodes) > 0 {
			return fmt.Sprintf("%v are left", nodes)
		}
		return ""
	})
}

// TestSimulatedWalks replays walks that were recorded. "make model" replays new ones.
func TestSimulatedWalks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.walk")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".walk")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			model, _, _ := strings.Cut(name, "-")
			replayWalk(t, recipeOf(t, model), parseWalk(string(text)))
		})
	}
}
