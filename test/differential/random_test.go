package differential

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-zk/docent/internal/rawzk"
)

const (
	randomOps    = 10000
	randomSlots  = 4   // clients at a time
	wipeEvery    = 300 // operations
	restartEvery = 4400
	shownHistory = 12 // operations before a difference
)

// TestRandom sends the same random operations to both servers, in lock-step. Each operation has its
// answer and all its events before the next one is sent. The test ends at the first difference.
// DIFFERENTIAL_SEED repeats a run, DIFFERENTIAL_OPS makes it longer or shorter. Without -count=1
// the go command may show an earlier run.
func TestRandom(t *testing.T) {
	t.Parallel()
	busySlots <- struct{}{}
	t.Cleanup(func() { <-busySlots })
	seed := envNumber(t, "DIFFERENTIAL_SEED", uint64(time.Now().UnixNano()))
	ops := envNumber(t, "DIFFERENTIAL_OPS", randomOps)
	t.Logf("%d operations, DIFFERENTIAL_SEED=%d", ops, seed)
	servers := startPair(t, config{properties: map[string]string{
		"DigestAuthenticationProvider.superDigest": digestOfSuper,
	}})
	groupsRun.Add(1)
	scenariosRun.Add(1)
	r := &randomRun{generator: newGenerator(seed), left: newSide(servers.left), right: newSide(servers.right)}
	defer r.left.script.finish()
	defer r.right.script.finish()
	r.step(step{text: "connect", run: (*side).begin})
	for n := uint64(1); n <= ops; n++ {
		if difference := r.step(r.generator.next(int(n))); difference != "" {
			t.Fatalf("operation %d of DIFFERENTIAL_SEED=%d:\n- %s\n+ %s\n%s\n%s", n, seed, servers.left.name(),
				servers.right.name(), strings.Join(r.history, "\n"), difference)
		}
	}
	t.Log(r.summary())
}

func envNumber(t *testing.T, variable string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", variable, text)
	}
	return n
}

// step is one operation. Its lines must be the same on both servers, for some steps in any order.
type step struct {
	text      string
	run       func(sd *side)
	unordered bool
	quiet     bool // causes no event at other clients
}

type randomRun struct {
	generator   *generator
	left, right *side
	history     []string
	counts      map[string]int
}

// step takes a step on both sides and returns the difference.
func (r *randomRun) step(st step) string {
	var both sync.WaitGroup
	for _, sd := range []*side{r.left, r.right} {
		both.Go(func() { sd.take(st) })
	}
	both.Wait()
	left, right := r.left.lines, r.right.lines
	if difference := diff(left, right); difference != "" {
		return difference
	}
	r.count(left)
	r.generator.learn(r.left.made)
	r.history = append(r.history, st.text)
	r.history = append(r.history, left...)
	if surplus := len(r.history) - shownHistory*4; surplus > 0 {
		r.history = slices.Delete(r.history, 0, surplus)
	}
	return ""
}

// count counts the kinds of lines, to show how much a run covered.
func (r *randomRun) count(lines []string) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	for _, line := range lines {
		for _, word := range strings.Fields(line) {
			if strings.HasSuffix(word, ")") && strings.Contains(word, "(-") || slices.Contains(countedWords, word) {
				r.counts[word]++
				break
			}
		}
	}
}

var countedWords = []string{"ok", "Created", "Deleted", "DataChanged", "ChildrenChanged", "connected"}

func (r *randomRun) summary() string {
	var parts []string
	for word, n := range r.counts {
		parts = append(parts, fmt.Sprintf("%s %d", word, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// side is one of the servers with its clients.
type side struct {
	script *script
	slots  [randomSlots]*client
	boss   *client  // has all permissions
	seen   int64    // the last zxid
	made   []string // nodes that the last step created
	lines  []string
}

func newSide(on target) *side {
	s := newScript(on, "random")
	s.sortACLs = true
	s.prepare()
	return &side{script: s, seen: s.base}
}

func (sd *side) begin() {
	for i := range sd.slots {
		sd.slots[i] = sd.script.connect(fmt.Sprintf("c%d", i))
	}
	sd.boss = sd.script.connect("boss")
	sd.boss.do(rawzk.Auth("digest", []byte("super:test")))
}

func (sd *side) take(st step) {
	sd.made = nil
	st.run(sd)
	if !st.quiet {
		sd.barrier()
	}
	sd.lines = sd.script.take()
	if st.unordered {
		slices.Sort(sd.lines)
	}
}

// barrier waits until every client has received all due events. All clients send their requests
// before any waits.
func (sd *side) barrier() {
	all := append(sd.slots[:], sd.boss)
	for _, c := range all {
		c.xid++
		c.waiting = append(c.waiting, &request{
			xid: c.xid, op: rawzk.Op{Code: rawzk.OpSync, Text: barrierText}, answer: &reply{missing: true},
		})
		c.sendFrame(rawzk.Request(c.xid, rawzk.Sync("/")))
	}
	for _, c := range all {
		c.settle()
	}
}

// do sends a request. If that ends the connection, the client reattaches to its session.
func (sd *side) do(slot int, op rawzk.Op) {
	c := sd.slots[slot]
	answer := c.do(op)
	if op.Code == rawzk.OpAuth && answer.err != 0 {
		c.end() // other clients can see the connection's watches until then
	}
	if c.ending != nil {
		sd.slots[slot] = sd.script.attach(c.name, c)
		return
	}
	sd.learn(op, answer)
}

func (sd *side) learn(op rawzk.Op, answer reply) {
	sd.seen = max(sd.seen, answer.zxid)
	if answer.err == 0 && isCreate(op.Code) {
		sd.made = append(sd.made, rawzk.Decode(answer.body).Str())
	}
}

// burst sends several requests before any is answered.
func (sd *side) burst(slot int, ops []rawzk.Op) {
	c := sd.slots[slot]
	c.pipeline(ops...)
	sent := slices.Clone(c.waiting)
	c.settle()
	for _, r := range sent {
		sd.learn(r.op, *r.answer)
	}
}

func isCreate(code int32) bool {
	return code == rawzk.OpCreate || code == rawzk.OpCreate2 || code == rawzk.OpCreateContainer ||
		code == rawzk.OpCreateTTL
}

// reattach moves a session to a new connection. The old one is closed by the client or by the
// server.
func (sd *side) reattach(slot int, leave bool) {
	old := sd.slots[slot]
	if leave {
		_ = old.conn.CloseWrite() // end reports an error
		old.end()
	}
	sd.slots[slot] = sd.script.attach(old.name, old)
	old.end()
	old.conn.Close()
}

// renew closes a session and opens another.
func (sd *side) renew(slot int) {
	old := sd.slots[slot]
	old.close()
	old.conn.Close()
	sd.slots[slot] = sd.script.connect(old.name)
}

// restart stops the server and starts it with its data. All clients reattach; their watches and
// credentials are lost.
func (sd *side) restart() {
	sd.script.stop()
	all := append(sd.slots[:], sd.boss)
	for _, c := range all {
		c.end()
	}
	sd.script.start()
	for slot, c := range sd.slots {
		sd.slots[slot] = sd.script.attach(c.name, c)
	}
	sd.boss = sd.script.attach("boss", sd.boss)
	sd.boss.do(rawzk.Auth("digest", []byte("super:test")))
}

// wipe deletes all nodes, whatever their permissions, so that the tree does not grow without limit
// or become read-only.
func (sd *side) wipe() {
	sd.wipeBelow(sd.script.root())
	sd.boss.do(rawzk.SetACL(sd.script.root(), rawzk.Open(), -1))
}

func (sd *side) wipeBelow(path string) {
	names := rawzk.Decode(sd.boss.do(rawzk.GetChildren2(path, false)).body).Strs()
	slices.Sort(names)
	for _, name := range names {
		sd.wipeBelow(path + "/" + name)
		sd.boss.do(del(path + "/" + name))
	}
}

// generator generates the steps. All that it knows of the servers is the names of new nodes, which
// are the same on both.
type generator struct {
	*rand.Rand
	root string
	made []string
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), root: "/random"}
}

// learn remembers some of the nodes that a step created, whose names may not be predictable.
func (g *generator) learn(paths []string) {
	const kept = 6
	g.made = append(g.made, paths...)
	if surplus := len(g.made) - kept; surplus > 0 {
		g.made = slices.Delete(g.made, 0, surplus)
	}
}
