package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// command sends a command and returns the answer.
func (r *running) command(line string) string {
	r.t.Helper()
	_, err := io.WriteString(r.in, line+"\n")
	require.NoError(r.t, err)
	answer, err := r.out.ReadString('\n')
	require.NoError(r.t, err, line)
	return strings.TrimSuffix(answer, "\n")
}

// commands sends commands that are answered with "ok" alone.
func (r *running) commands(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		require.Equal(r.t, "ok", r.command(line), line)
	}
}

func create(t *testing.T, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	_, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

func exists(t *testing.T, conn *zk.Conn, path string) bool {
	t.Helper()
	found, _, err := conn.Exists(path)
	require.NoError(t, err)
	return found
}

func TestStoppedServerKeepsNodesAndSessions(t *testing.T) {
	t.Parallel()
	for _, again := range [][]string{
		{"stop", "start"}, {"restart"}, {"stop", "stop", "start", "start"}, {"stop", "restart"},
	} {
		t.Run(strings.Join(again, " "), func(t *testing.T) {
			t.Parallel()
			r := start(t, "-commands")
			conn, events := r.connectTo(r.addr, 30*time.Second)
			create(t, conn, "/kept", 0)
			create(t, conn, "/mine", zk.FlagEphemeral)
			session := conn.SessionID()
			r.commands(again...)
			await(t, events, zk.StateDisconnected)
			await(t, events, zk.StateHasSession)
			assert.Equal(t, session, conn.SessionID())
			assert.True(t, exists(t, conn, "/kept"))
			assert.True(t, exists(t, conn, "/mine"))
		})
	}
}

func TestStoppedServerRefusesConnections(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands", "-servers", "3")
	r.commands("stop")
	for _, addr := range strings.Split(r.addr, ",") {
		_, err := net.DialTimeout("tcp", addr, patience)
		require.Error(t, err, addr)
	}
	assert.Contains(t, r.command("status"), "state=stopped ")
	r.commands("start")
	for _, addr := range strings.Split(r.addr, ",") {
		assert.Equal(t, "imok", r.askAt(addr, "ruok"))
	}
}

func TestWipeKeepsTheInitialNodes(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"running": {}, "stopped": {"stop"}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, "-commands", "-load", write(t, `{"/app/mode": "test"}`))
			first := r.connect(10 * time.Second)
			id := first.SessionID()
			create(t, first, "/mine", 0)
			require.NoError(t, first.Delete("/app/mode", -1))
			require.Contains(t, r.command("sessions"), fmt.Sprintf("%#x", uint64(id)))
			r.commands(append(before, "wipe")...)
			sessions := r.command("sessions") // the client may have got another one by now
			assert.Equal(t, "ok", strings.Fields(sessions)[0])
			assert.NotContains(t, sessions, fmt.Sprintf("%#x", uint64(id)))
			assert.Equal(t, len(before) > 0, strings.Contains(r.command("status"), "state=stopped "))
			r.commands("start")
			second := r.connect(10 * time.Second)
			assert.True(t, exists(t, second, "/app/mode"))
			assert.False(t, exists(t, second, "/mine"))
		})
	}
}

func TestReadOnlyServerServesNoOrdinaryClient(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands")
	conn, events := r.connectTo(r.addr, 30*time.Second)
	session := conn.SessionID()
	r.commands("readonly on")
	await(t, events, zk.StateDisconnected)
	assert.Equal(t, "ro", r.ask("isro"))
	assert.Contains(t, r.command("status"), " mode=read-only ")
	r.commands("readonly off")
	await(t, events, zk.StateHasSession)
	assert.Equal(t, session, conn.SessionID())
	assert.Equal(t, "rw", r.ask("isro"))
	assert.Contains(t, r.command("status"), " mode=read-write ")
}

func TestExpireDeletesTheSessionAndItsNodes(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"0x%x", "%d"} {
		t.Run(form, func(t *testing.T) {
			r := start(t, "-commands")
			conn, events := r.connectTo(r.addr, 30*time.Second)
			other := r.connect(30 * time.Second)
			create(t, conn, "/mine", zk.FlagEphemeral)
			session := conn.SessionID()
			id := fmt.Sprintf(form, session)
			r.commands("expire " + id)
			assert.False(t, exists(t, other, "/mine"))
			await(t, events, zk.StateExpired)
			assert.Contains(t, r.command("expire "+id), "error: session "+id+": there is none")
		})
	}
}

func TestDroppedConnectionDoesNotEndItsSession(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands")
	conn, events := r.connectTo(r.addr, 30*time.Second)
	session := conn.SessionID()
	r.commands(fmt.Sprintf("drop 0x%x", session))
	await(t, events, zk.StateDisconnected)
	await(t, events, zk.StateHasSession)
	assert.Equal(t, session, conn.SessionID())
}

func TestServersListTheirSessions(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands", "-servers", "3")
	assert.Equal(t, "ok", r.command("sessions"))
	assert.Equal(t, "ok state=running mode=read-write sessions=0 connect="+r.addr, r.command("status"))
	a, b := r.connect(10*time.Second), r.connect(10*time.Second)
	assert.Equal(t, fmt.Sprintf("ok 0x%x 0x%x", a.SessionID(), b.SessionID()), r.command("sessions"))
	assert.Equal(t, "ok state=running mode=read-write sessions=2 connect="+r.addr, r.command("status"))
}

func TestEachLineIsAnsweredAndErrorsNameIt(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands")
	for line, want := range map[string]string{
		"halt":                      `"halt"`,
		"STOP":                      `"STOP"`,
		"stop 2":                    "want stop",
		"readonly":                  "want readonly on|off",
		"readonly perhaps":          `"perhaps"`,
		"expire":                    "want expire SESSION",
		"expire me":                 `"me"`,
		"expire 0x1":                "0x1",
		"drop 99999999999999999999": `"99999999999999999999"`,
	} {
		answer := r.command(line)
		assert.True(t, strings.HasPrefix(answer, "error: "), "%s: %s", line, answer)
		assert.Contains(t, answer, want)
	}
	_, err := io.WriteString(r.in, "\n  \n")
	require.NoError(t, err)
	help := r.command("  help ")
	for _, c := range commands {
		assert.Contains(t, help, c.usage())
	}
}

func TestEndOfStandardInputEndsTheServer(t *testing.T) {
	t.Parallel()
	r := start(t, "-commands")
	r.connect(10 * time.Second) // it is still running
	require.NoError(t, r.in.Close())
	r.requireEnd()
}

func TestServersAreAnEnsemble(t *testing.T) {
	t.Parallel()
	r := start(t, "-servers", "3")
	servers := strings.Split(r.addr, ",")
	require.Len(t, servers, 3)
	for i, mode := range []string{"leader", "follower", "follower"} {
		assert.Contains(t, r.askAt(servers[i], "srvr"), "\nMode: "+mode+"\n")
	}
	one, _ := r.connectTo(servers[1], 10*time.Second)
	two, _ := r.connectTo(servers[2], 10*time.Second)
	create(t, one, "/a", 0)
	_, err := two.Sync("/a")
	require.NoError(t, err)
	assert.True(t, exists(t, two, "/a"))
}
