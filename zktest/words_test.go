package zktest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
)

// The expected texts are what the real 3.8.0 prints, except for numbers, ids and times.

// wordLimit bounds the wait for an answer.
const wordLimit = time.Minute

// joinAs connects the Go driver in memory, and waits for the session.
func joinAs(t *testing.T, c *zktest.Client, host string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{host}, timeout, zk.WithLogInfo(false), zk.WithDialer(c.Dialer()))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for event := range events {
		if event.State == zk.StateHasSession {
			return conn
		}
	}
	t.Fatal("closed before there was a session")
	return nil
}

func makeNode(t *testing.T, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	_, err := conn.Create(path, []byte("x"), flags, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

// sayWord sends pieces on a new connection in memory, each after the one before it has been read,
// and returns the answer. It needs a bubble.
func sayWord(t *testing.T, srv *zktest.Server, host string, pieces ...string) string {
	t.Helper()
	nc, err := srv.Dialer()("tcp", host, 0)
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	for _, piece := range pieces {
		_, err := io.WriteString(nc, piece)
		require.NoError(t, err)
		synctest.Wait()
	}
	return readToEnd(t, nc)
}

func readToEnd(t *testing.T, nc net.Conn) string {
	t.Helper()
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(wordLimit)))
	answer, err := io.ReadAll(nc)
	require.NoError(t, err, "after %q", answer)
	return string(answer)
}

func commandOf(t *testing.T, srv *zktest.Server, word string) string {
	t.Helper()
	answer, err := srv.Command(word)
	require.NoError(t, err)
	return answer
}

func TestPlainWords(t *testing.T) {
	for _, test := range []struct{ word, want string }{
		{"ruok", "imok"},
		{"isro", "rw"},
		{"gtmk", "306"},
		{"stmk\x00\x00\x00\x00\x00\x00\x00\x02", "2"},
		{"hash", ""},
		{"dirs", "datadir_size: 0\nlogdir_size: 0\n"},
		{"srst", "Server stats reset.\n"},
		{"crst", "Connection stats reset.\n"},
		{"wchs", "0 connections watching 0 paths\nTotal watches:0\n"},
		{"wchc", "\n"},
		{"wchp", "\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			assert.Equal(t, test.want, sayWord(t, srv, srv.MemAddr(), test.word), "%q", test.word)
			assert.Equal(t, test.want, commandOf(t, srv, test.word), "%q", test.word)
		})
	}
}

func TestWordsMayComeInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		for _, pieces := range [][]string{{"r", "u", "o", "k"}, {"ruo", "k"}, {"ruok\n"}, {"ruok and more"}} {
			assert.Equal(t, "imok", sayWord(t, srv, srv.MemAddr(), pieces...), "%q", pieces)
		}
	})
}

func TestOtherWordsAreAbsurdLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		before := time.Now()
		for _, word := range []string{"RUOK", "abcd", "lsnp", "stmk"} { // the last one has no mask
			assert.Empty(t, sayWord(t, srv, srv.MemAddr(), word), "%q", word)
		}
		assert.Equal(t, before, time.Now(), "the server does not wait")
	})
}

func TestWordsAreOnlyTheFirstBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var hello bytes.Buffer
		for _, field := range []any{int32(44), int32(0), int64(0), int32(10_000), int64(0), int32(16), [16]byte{}} {
			require.NoError(t, binary.Write(&hello, binary.BigEndian, field))
		}
		answer := sayWord(t, srv, srv.MemAddr(), hello.String(), "ruok")
		assert.Len(t, answer, 40, "the answer to the handshake, and nothing after it: %q", answer)
	})
}

func TestMaskIsKeptUntilARestart(t *testing.T) {
	srv := zktest.Start(t)
	require.Equal(t, "255", commandOf(t, srv, "stmk\x00\x00\x00\x00\x00\x00\x00\xff"))
	assert.Equal(t, "255", commandOf(t, srv, "gtmk"))
	require.NoError(t, srv.Restart())
	assert.Equal(t, "306", commandOf(t, srv, "gtmk"))
}

func TestWordsOutsideOfTheWhitelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithConfig("4lw.commands.whitelist", "ruok, srvr"))
		assert.Equal(t, "imok", sayWord(t, srv, srv.MemAddr(), "ruok"))
		const want = "mntr is not executed because it is not in the whitelist.\n"
		assert.Equal(t, want, sayWord(t, srv, srv.MemAddr(), "mntr"))
		assert.Equal(t, want, commandOf(t, srv, "mntr"))
		assert.Empty(t, sayWord(t, srv, srv.MemAddr(), "abcd"))
	})
}

// The real server's own scripts send srvr. Clients that look for a server that is not read-only
// send isro.
func TestWordsThatNoWhitelistRefuses(t *testing.T) {
	const refused = " is not executed because it is not in the whitelist.\n"
	whitelist := func(words string) zktest.Option { return zktest.WithConfig("4lw.commands.whitelist", words) }
	readOnlyMode := zktest.WithConfig("readonlymode.enabled", "true")
	for name, test := range map[string]struct {
		options    []zktest.Option
		isro, ruok string
	}{
		"another word":                 {[]zktest.Option{whitelist("stat")}, "isro" + refused, "ruok" + refused},
		"no word":                      {[]zktest.Option{whitelist("")}, "isro" + refused, "ruok" + refused},
		"isro":                         {[]zktest.Option{whitelist("stat, isro")}, "rw", "ruok" + refused},
		"another word, read-only mode": {[]zktest.Option{whitelist("stat"), readOnlyMode}, "rw", "ruok" + refused},
		"all":                          {[]zktest.Option{whitelist("*")}, "rw", "imok"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t, test.options...)
			assert.Contains(t, commandOf(t, srv, "srvr"), "\nMode: standalone\n")
			assert.Equal(t, test.isro, commandOf(t, srv, "isro"))
			assert.Equal(t, test.ruok, commandOf(t, srv, "ruok"))
		})
	}
}

func TestCommandRefuses(t *testing.T) {
	srv := zktest.Start(t)
	for _, word := range []string{"", "ruo", "ruok\n", "abcd", "stmk", "stmk1"} {
		_, err := srv.Command(word)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", word))
	}
	srv.Stop()
	_, err := srv.Command("ruok")
	require.ErrorContains(t, err, "not running")
	require.NoError(t, srv.Start())
	assert.Equal(t, "imok", commandOf(t, srv, "ruok"))
}

func TestWordsOfAnEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		follower := srv.Follower(0)
		conn := joinAs(t, srv.Client("a"), follower.MemAddr(), 40*time.Second)
		makeNode(t, conn, "/e", zk.FlagEphemeral)
		leading, following := sayWord(t, srv, srv.MemAddr(), "srvr"), sayWord(t, srv, follower.MemAddr(), "srvr")
		assert.Contains(t, leading, "\nReceived: 1\nSent: 0\nConnections: 1\n")
		assert.Contains(t, leading, "\nMode: leader\nNode count: 6\nProposal sizes last/min/max: -1/-1/-1\n")
		assert.Contains(t, following, "\nReceived: 3\nSent: 2\nConnections: 2\n")
		assert.True(t, strings.HasSuffix(following, "\nMode: follower\nNode count: 6\n"), following)
		assert.Contains(t, sayWord(t, srv, srv.MemAddr(), "mntr"), "\nzk_learners\t1\n")
		assert.NotContains(t, sayWord(t, srv, follower.MemAddr(), "mntr"), "zk_learners")
		assert.Contains(t, sayWord(t, srv, follower.MemAddr(), "conf"), "\nserverId=2\n")
		want := fmt.Sprintf("SessionTracker dump:\nGlobal Sessions(1):\n0x%x\t40000ms\nephemeral nodes dump:\n",
			uint64(conn.SessionID()))
		assert.Contains(t, sayWord(t, srv, follower.MemAddr(), "dump"), want)
	})
}

func TestWordsOfAReadOnlyServer(t *testing.T) {
	srv := zktest.Start(t)
	srv.SetReadOnly(true)
	assert.Equal(t, "ro", commandOf(t, srv, "isro"))
	srvr := commandOf(t, srv, "srvr")
	assert.Contains(t, srvr, " UTC\nREAD-ONLY mode; serving only read-only clients\nLatency ")
	assert.Contains(t, srvr, "\nMode: read-only\n")
	srv.SetReadOnly(false)
	assert.Equal(t, "rw", commandOf(t, srv, "isro"))
	assert.NotContains(t, strings.ToLower(commandOf(t, srv, "srvr")), "read-only")
}

func TestGoDriverUnderstandsWords(t *testing.T) {
	srv := zktest.Start(t)
	conn, events, err := zk.Connect([]string{srv.Addr()}, 30*time.Minute, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer conn.Close()
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	makeNode(t, conn, "/a", 0)
	assert.Equal(t, []bool{true}, zk.FLWRuok([]string{srv.Addr()}, wordLimit))
	// It reports the line of its own connection as an error, as with the real server.
	answers, _ := zk.FLWCons([]string{srv.Addr()}, wordLimit)
	require.Len(t, answers, 1)
	require.Len(t, answers[0].Clients, 1)
	c := answers[0].Clients[0]
	assert.Equal(t, conn.SessionID(), c.SessionID)
	assert.Equal(t, "CREA", c.LastOperation)
	assert.Equal(t, []int64{2, 2, 2, 1_800_000}, []int64{c.Received, c.Sent, c.Lzxid, int64(c.Timeout)})
}
