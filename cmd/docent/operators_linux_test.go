package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/group"
	"github.com/docent-zk/docent/recipes/inspect"
	"github.com/docent-zk/docent/recipes/leader"
	"github.com/docent-zk/docent/recipes/mutex"
	"github.com/docent-zk/docent/recipes/rwlock"
	"github.com/docent-zk/docent/recipes/semaphore"
	"github.com/docent-zk/docent/retry"
)

// identity returns the data of a lock node of a process.
func identity(host, process string, pid int) []byte {
	data, _ := json.Marshal(recipes.Identity{Host: host, Process: process, PID: pid}) // never an error
	return data
}

// newMutex returns the mutex at path of a process.
func newMutex(t testing.TB, c *framework.Client, path, host string, pid int) *mutex.Mutex {
	t.Helper()
	mu, err := mutex.New(c, path, mutex.WithData(identity(host, "orders", pid)))
	require.NoError(t, err)
	return mu
}

func acquire(t testing.TB, l recipes.Locker) *recipes.Hold {
	t.Helper()
	hold, err := l.Acquire(testzk.Context(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Release() })
	return hold
}

// queue starts to acquire a lock, and keeps it until stop is called or the test ends. It returns when
// the queue of path has so many nodes.
func queue(t testing.TB, c *framework.Client, l recipes.Locker, path string, nodes int) (stop func()) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if hold, err := l.Acquire(ctx); err == nil {
			<-ctx.Done()
			_ = hold.Release()
		}
	}()
	stop = func() {
		end()
		<-done
	}
	t.Cleanup(stop)
	testzk.Eventually(t, func() bool {
		o, err := inspect.Show(testzk.Context(t), c, path)
		return err == nil && len(o.Nodes) == nodes
	}, "%s does not get %d nodes", path, nodes)
	return stop
}

// Two clients with objects of all sorts, as the clients name them: below the chroot of the test.
func makeObjects(t testing.TB, chroot string) {
	t.Helper()
	a, b := testzk.Connected(t, testzk.Connect()+chroot), testzk.Connected(t, testzk.Connect()+chroot)
	ctx := testzk.Context(t)
	acquire(t, newMutex(t, a, "/locks/orders", "host-3", 4711))
	queue(t, a, newMutex(t, b, "/locks/orders", "host-5", 815), "/locks/orders", 2)
	acquire(t, newMutex(t, b, "/locks/stock", "host-5", 815))
	queue(t, a, newMutex(t, a, "/locks/stock", "host-3", 4711), "/locks/stock", 2)

	index, err := rwlock.New(a, "/locks/index", rwlock.WithData([]byte("10.0.0.3")))
	require.NoError(t, err)
	acquire(t, index.Read())
	indexOfB, err := rwlock.New(b, "/locks/index", rwlock.WithData([]byte("a \x1b[31mcolour")))
	require.NoError(t, err)
	acquire(t, indexOfB.Read())
	queue(t, a, indexOfB.Write(), "/locks/index", 3)

	backup, err := mutex.New(b, "/backup", mutex.WithData(identity("host-9", commandPrefix+"backup.sh", 7)))
	require.NoError(t, err)
	acquire(t, backup)
	downloads, err := semaphore.New(a, "/locks/downloads", 2, semaphore.WithData([]byte("10.0.0.3")))
	require.NoError(t, err)
	acquire(t, downloads)

	latch, err := leader.NewLatch(a, "/leader", leader.WithID("host-3"))
	require.NoError(t, err)
	require.NoError(t, latch.Start(ctx))
	t.Cleanup(func() { _ = latch.Close() })
	_, err = latch.Await(ctx)
	require.NoError(t, err)
	member, err := group.Join(ctx, b, "/members", "host-5", []byte("10.0.0.5"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = member.Close() })
	for path, data := range map[string]string{
		"/count": "\x00\x00\x00\x07", "/old/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000": "",
	} {
		_, err := a.Create(ctx, path, []byte(data), framework.Parents())
		require.NoError(t, err)
	}
	for _, path := range []string{"/free", "/free/below"} { // no container, which servers would delete
		_, err = a.Create(ctx, path, nil)
		require.NoError(t, err)
	}
	require.NoError(t, a.Delete(ctx, "/free/below", -1))
}

// varying are the texts in outputs that are different in each run, and what stands for them.
var varying = []struct {
	match *regexp.Regexp
	as    string // with a number for each different text if it ends in #
}{
	{regexp.MustCompile(`since then|at the latest since [0-9TZ:.-]+, \w+ ago`), "HELD"},
	{regexp.MustCompile(`_c_[0-9a-f-]{36}-`), "_c_GUID#"},
	{regexp.MustCompile(`\b[0-9]+ \(0x[0-9a-f]+\)`), "TOKEN#"},
	{regexp.MustCompile(`0x[0-9a-f]+`), "0x#"},
	{regexp.MustCompile(`"held_since":"[^"]*",`), ""}, // of which there is none in some orders of events
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`"age_seconds":[0-9.]+`), `"age_seconds":AGE`},
	{regexp.MustCompile(`\b(\d+[dhms]){1,2}\b`), "AGE"},
	{regexp.MustCompile(` {3,}`), "   "},
}

// constant returns an output without what is different in each run. numbers has the numbers of texts.
func constant(output string, numbers map[string]int) string {
	for _, v := range varying {
		output = v.match.ReplaceAllStringFunc(output, func(text string) string {
			as, numbered := strings.CutSuffix(v.as, "#")
			if !numbered {
				return as
			}
			if numbers[text] == 0 {
				numbers[text] = len(numbers) + 1
			}
			return fmt.Sprint(as, numbers[text])
		})
	}
	return output
}

// The outputs of all commands for operators are those of a file.
func TestWhatOperatorsSee(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	makeObjects(t, chroot)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	holder := shown(t, c, "/locks/orders").Nodes[0]
	file := filepath.Join("testdata", "operators.txt")
	const aNode = "/old/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000"
	numbers := map[string]int{}
	var all strings.Builder
	for _, line := range []string{
		"ls /", "ls -o json /locks/downloads", "ls --kind mutex,latch --state held --state waited-for /",
		"ls --state abandoned /", "ls --state free /", "ls --kind empty,unknown /", "ls --limit 2 /",
		"ls --kind barrier /", "ls --state held,waited-for /locks", "ls /free", "ls /locks/orders", "ls /none",
		"show /locks/orders", "show /locks/index",
		"show /locks/downloads", "show /leader", "show /members", "show /count", "show /old",
		"show " + aNode, "break --yes " + aNode, "show /free",
		"show /locks", "show /none", "show -o json /locks/orders", "session " + holder.Session.String() + " /",
		"session -o json " + holder.Session.String() + " /leader", "session 0x7777777777777777 /",
		"session 0x7777777777777777 /none", "session --cycles /", "session --cycles -o json /locks",
		"session --cycles /members", "session --cycles /none", "revoke /locks/index __WRIT__0000000002",
		"revoke /locks/index", "show /locks/index", "revoke -o json /locks/downloads", "revoke /members",
		"revoke /leader", "revoke /backup", "revoke /free", "revoke /none", "revoke /locks/orders other",
		"break --yes /members", "break --yes /locks/index", "break --yes /locks/index __READ__0000000001",
		"break --yes /none", "break --yes /free", "break --yes /locks/orders", "break --yes /locks/orders ",
		"show /locks/orders", "break --yes -o json /locks/downloads",
	} {
		args := append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)
		cmd := docent(args...)
		cmd.Env = append(cmd.Env, "TZ=Asia/Tokyo") // times are in UTC everywhere
		code, out, errs := finishCommand(t, cmd)
		fmt.Fprintf(&all, "%s\n", constant(fmt.Sprintf("$ docent %s\n%s%s", line, out, errs), numbers))
		if code != 0 {
			fmt.Fprintf(&all, "exit code %d\n\n", code)
		}
	}
	if *update {
		writeFile(t, file, all.String(), 0o644)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), all.String(), "go test -run TestWhatOperatorsSee -update writes the file")
}

func shown(t testing.TB, c *framework.Client, path string) *inspect.Object {
	t.Helper()
	o, err := inspect.Show(testzk.Context(t), c, path)
	require.NoError(t, err)
	return o
}

func TestAllKindsAndStatesCanBeChosen(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../recipes/inspect/object.go")
	require.NoError(t, err)
	for name, known := range map[string]string{"Kind": join(kinds), "State": join(states)} {
		var all []string
		constants := regexp.MustCompile(`(?m)^\t` + name + `\w+ +` + name + ` = "([^"]+)"`)
		for _, c := range constants.FindAllStringSubmatch(string(source), -1) {
			all = append(all, c[1])
		}
		require.NotEmpty(t, all)
		assert.Equal(t, strings.Join(all, ", "), known)
	}
	help, err := os.ReadFile(filepath.Join("testdata", "help-ls.txt"))
	require.NoError(t, err)
	for _, kind := range kinds {
		assert.Contains(t, string(help), string(kind))
	}
}

func TestTheLockOfANode(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000":         "/a",
		"/a/leases/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lease-0000000000": "/a",
		"/a/b/91a6db29d0204f978259c911df0fa437__rlock__0000000001":           "/a/b",
		"/a": "", "/lock-0000000001": "", "/a/lock-1": "", "/a/lock-0000000001/b": "",
	} {
		assert.Equal(t, want, lockOf(path), path)
	}
}

// The watch goes on if an object cannot be read because there is no connection.
func TestWatchReadsAgainWhenThereIsAConnection(t *testing.T) {
	t.Parallel()
	network := testzk.Proxy(t)
	c := testzk.Connected(t, network.Addr(), framework.WithRetry(retry.Never()))
	network.Blackhole(true)
	network.DropConnections()
	var out lockedBuffer
	w := watching{client: c, path: testzk.Path(t), table: output{Writer: &out, json: true}.table()}
	looked := make(chan error, 1)
	go func() { looked <- w.look(testzk.Context(t)) }()
	_, err := c.Exists(testzk.Context(t), "/")
	require.Error(t, err, "a request fails, and so has the one before")
	network.Blackhole(false)
	network.DropConnections()
	require.NoError(t, <-looked)
	assert.Contains(t, out.String(), `"missing":true`)
}

func TestSinceWhenALockIsHeld(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := &inspect.Object{At: at.Add(time.Hour)}
	for want, held := range map[string]time.Time{
		"since then":                       at,
		"since an unknown time after that": {},
		"at the latest since 2026-01-02T03:34:05Z, 30m0s ago": at.Add(30 * time.Minute),
	} {
		assert.Equal(t, want, heldText(o, inspect.Node{Since: at, HeldSince: held}))
	}
}

// Commands that read leave no node, and need no permission but to read.
func TestReadingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	observer := testzk.Observer(t)
	_, err := observer.Create(filepath.Dir(chroot), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = observer.Create(chroot, nil, 0, zk.WorldACL(zk.PermRead))
	require.NoError(t, err)
	for _, line := range []string{
		"ls /", "ls /a/b", "show /a", "show /", "session 0x1 /", "session --cycles /", "revoke /a/b", "break --yes /a",
	} {
		code, _, errs := finish(t, append([]string{"--connect", testzk.Connect() + chroot}, strings.Fields(line)...)...)
		assert.Contains(t, []int{0, exitNoNode}, code, errs)
	}
	children, stat, err := observer.Children(chroot)
	require.NoError(t, err)
	assert.Empty(t, children)
	assert.Zero(t, stat.Cversion)
	_, _, errs := finish(t, "--connect", testzk.Connect()+chroot+"/missing", "ls", "/")
	assert.Equal(t, "docent: /: there is no such node; a lock that is free may have none\n", errs)
	exists, _, err := observer.Exists(chroot + "/missing")
	require.NoError(t, err)
	assert.False(t, exists)
}

func TestNodesThatMayNotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	makeObjects(t, chroot)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	_, err := c.SetACL(testzk.Context(t), "/members", zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = c.SetACL(context.Background(), "/members", zk.WorldACL(zk.PermAll), -1) })
	at := []string{"--connect", testzk.Connect() + chroot}
	code, out, errs := finish(t, append(at, "ls", "/")...)
	assert.Equal(t, exitRefused, code)
	assert.Contains(t, out, "/old ", "the list goes on")
	assert.Equal(t, "docent: inspect /members: zk: no permission (ACL)\n"+
		"docent: the list is not complete: not all nodes may be read\n", errs)
	code, _, _ = finish(t, append(at, "show", "/members")...)
	assert.Equal(t, exitRefused, code)
	code, _, errs = finish(t, append(at, "session", "0x1", "/")...)
	assert.Zero(t, code)
	assert.Contains(t, errs, "docent: 1 nodes could not be read, and may be of the session\n")
}

func TestOutputsThatAreNotReadEndDocentSilently(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	makeObjects(t, chroot)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer func() { _ = writer.Close() }()
	var errs strings.Builder
	cmd := docent("--connect", testzk.Connect()+chroot, "ls", "/")
	cmd.Stdout, cmd.Stderr = writer, &errs
	require.NoError(t, cmd.Start())
	overdue := time.AfterFunc(testzk.Patience, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	var end *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &end)
	assert.Equal(t, syscall.SIGPIPE, end.Sys().(syscall.WaitStatus).Signal())
	assert.Empty(t, errs.String())
}

// breakOn starts docent break on a terminal.
func breakOn(t *testing.T, chroot, path string) *terminal {
	t.Helper()
	line := fmt.Sprintf(`"$docent" --connect %s break %s; echo "ended $?."`, testzk.Connect()+chroot, path)
	c := openTerminal(t, "sh", "trap : INT; "+line)
	c.await("Type yes to delete the node: ")
	return c
}

func TestBreakAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	held := acquire(t, newMutex(t, c, "/orders", "host-3", 4711))
	queue(t, c, newMutex(t, testzk.Connected(t, testzk.Connect()+chroot), "/orders", "host-5", 815), "/orders", 2)

	for answer, want := range map[string]string{
		"no\n": "nothing was deleted: the answer was not yes", "\n": "nothing was deleted", interruptKey: "ended 130.",
	} {
		question := breakOn(t, chroot, "/orders")
		question.press(answer)
		question.await(want)
		assert.NoError(t, held.Err())
	}
	question := breakOn(t, chroot, "/orders")
	question.await("orders[4711] on host-3")
	question.await("First in the queue is orders[815] on host-5.")
	question.await(fmt.Sprintf("%d (%#x)", held.Token(), held.Token()))
	question.press("yes\n")
	question.await("ended 0.")
	testzk.Closes(t, held.Done(), "the hold does not end")
	assert.ErrorIs(t, held.Err(), recipes.ErrNodeDeleted)
	assert.Equal(t, 815, shown(t, c, "/orders").Nodes[0].PID)
}

// The name of a node is empty, as a variable of a script that is not set, or of another lock.
func TestBreakAndRevokeTouchNoOtherNode(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	held := acquire(t, newMutex(t, c, "/orders", "host-3", 4711))
	other := acquire(t, newMutex(t, c, "/other", "host-3", 4711))
	name := strings.TrimPrefix(other.Path(), "/other/")
	for node, want := range map[string]int{
		"": exitUsage, "/": exitNoNode, "/other/": exitNoNode, "/orders/": exitNoNode, other.Path(): exitNoNode,
		"/somewhere/" + strings.TrimPrefix(held.Path(), "/orders/"): exitNoNode, name: exitNoNode,
	} {
		for _, args := range [][]string{{"break", "--yes"}, {"revoke"}} {
			code, _, errs := finish(t, append(args, "--connect", testzk.Connect()+chroot, "/orders", node)...)
			assert.Equal(t, want, code, "%q: %s", node, errs)
		}
	}
	require.NoError(t, held.Release(), "its node is there")
	require.NoError(t, other.Release())
}

// A node cannot be written. The others are asked, and what they said about their clients is printed.
func TestRevokeAsksAllThatItMay(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	permits, err := semaphore.New(c, "/exports", 3, semaphore.WithData([]byte("10.0.0.3")))
	require.NoError(t, err)
	var holds []*recipes.Hold
	for range 3 {
		hold, err := permits.Acquire(testzk.Context(t))
		require.NoError(t, err)
		holds = append(holds, hold)
	}
	_, err = c.SetACL(testzk.Context(t), holds[1].Path(), zk.WorldACL(zk.PermRead), -1)
	require.NoError(t, err)
	code, out, errs := finish(t, "revoke", "--connect", testzk.Connect()+chroot, "/exports")
	require.Equal(t, exitRefused, code, errs)
	require.Equal(t, 2, strings.Count(out, "10.0.0.3"), out)
	for _, n := range []int{0, 2} {
		testzk.Closes(t, holds[n].Revoked(), "the holder is not asked")
	}
}

// While the operator thinks, the holder releases the lock, and another client gets it.
func TestBreakDeletesTheNodeThatItHasShownOrNone(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	held := acquire(t, newMutex(t, c, "/orders", "host-3", 4711))
	question := breakOn(t, chroot, "/orders")
	require.NoError(t, held.Release())
	next := acquire(t, newMutex(t, testzk.Connected(t, testzk.Connect()+chroot), "/orders", "host-5", 815))
	question.press("yes\n")
	question.await("the node is there no more, and nothing was deleted")
	question.await(fmt.Sprintf("ended %d.", exitNoNode))
	require.NoError(t, next.Release(), "its node is there")

	const node = "/old/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000" // made by hand
	for _, path := range []string{"/old", node} {
		_, err := c.Create(testzk.Context(t), path, nil)
		require.NoError(t, err)
	}
	question = breakOn(t, chroot, "/old")
	require.NoError(t, c.Delete(testzk.Context(t), node, -1))
	_, err := c.Create(testzk.Context(t), node, nil, framework.Ephemeral())
	require.NoError(t, err)
	question.press("yes\n")
	question.await("the node is there no more, and nothing was deleted")
	_, err = c.Exists(testzk.Context(t), node)
	require.NoError(t, err)
}

// watched is a line of docent watch -o json.
type watched struct {
	inspect.Object
	Missing bool
}

// awaitLine reads lines of docent watch until one is as wanted.
func (p *process) awaitLine(want func(watched) bool) watched {
	p.t.Helper()
	for {
		var w watched
		require.NoError(p.t, json.Unmarshal([]byte(p.line()), &w))
		if want(w) {
			return w
		}
	}
}

func counts(holders, waiters int) func(watched) bool {
	return func(w watched) bool { return w.Holders == holders && w.Waiters == waiters }
}

// A lock without holders and waiters looks the same with a node and without.
func TestWatchPrintsThatTheNodeIsGone(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	_, err := c.Create(testzk.Context(t), "/orders", nil, framework.Parents())
	require.NoError(t, err)
	p := start(t, "--connect", testzk.Connect()+chroot, "watch", "-o", "json", "/orders")
	missing := func(is bool) func(watched) bool { return func(w watched) bool { return w.Missing == is } }
	p.awaitLine(missing(false))
	require.NoError(t, c.Delete(testzk.Context(t), "/orders", -1))
	p.awaitLine(missing(true))
	_, err = c.Create(testzk.Context(t), "/orders", nil)
	require.NoError(t, err)
	p.awaitLine(missing(false))
	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.wait(), &p.errs)
}

// A limit of a semaphore is not where a lock is.
func TestLimitIsNotSetOnALock(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	held := acquire(t, newMutex(t, c, "/orders", "host-3", 4711))
	before, _, err := c.Get(testzk.Context(t), "/orders")
	require.NoError(t, err)
	code, _, errs := finish(t, "limit", "--connect", testzk.Connect()+chroot, "--force", "/orders", "5")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "/orders is a lock (mutex), and no limit: nothing was written")
	after, _, err := c.Get(testzk.Context(t), "/orders")
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.NoError(t, held.Release())
}

func TestWatchPrintsChangesThroughLostSessions(t *testing.T) {
	t.Parallel()
	chroot := testzk.Path(t)
	c := testzk.Connected(t, testzk.Connect()+chroot)
	network := testzk.Proxy(t)
	p := start(t, "--connect", network.Addr()+chroot, "--session-timeout", "4s", "watch", "-o", "json", "/locks/orders")
	assert.True(t, p.awaitLine(counts(0, 0)).Missing, "not even the chroot is there")
	held := acquire(t, newMutex(t, c, "/locks/orders", "host-3", 4711))
	assert.Equal(t, "host-3", p.awaitLine(counts(1, 0)).Nodes[0].Host)
	other := testzk.Connected(t, testzk.Connect()+chroot)
	queue(t, c, newMutex(t, other, "/locks/orders", "host-5", 815), "/locks/orders", 2)
	p.awaitLine(counts(1, 1))

	network.DropConnections()
	testzk.Eventually(t, func() bool { return strings.Contains(p.errs.String(), "the connection is reconnected") },
		"no reconnect")
	require.NoError(t, held.Release())
	assert.Equal(t, "host-5", p.awaitLine(counts(1, 0)).Nodes[0].Host)

	network.Blackhole(true)
	testzk.Eventually(t, func() bool { return strings.Contains(p.errs.String(), "the connection is lost") },
		"the session is not lost")
	stop := queue(t, c, newMutex(t, c, "/locks/orders", "host-7", 1), "/locks/orders", 2)
	network.Blackhole(false)
	network.DropConnections()
	p.awaitLine(counts(1, 1))
	stop()
	p.awaitLine(counts(1, 0))

	p.signal(syscall.SIGINT)
	assert.Equal(t, 130, p.wait(), &p.errs)
}
