package conn

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// granting is a server that grants a session with a password of so many bytes, and then adds so many others.
func granting(password, others int) *recording {
	b := binary.BigEndian.AppendUint32(nil, uint32(connectReplyMin+password+others))
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint32(b, 1000)
	b = binary.BigEndian.AppendUint64(b, 7)
	b = binary.BigEndian.AppendUint32(b, uint32(password))
	return &recording{pieces: pieces{stream: append(b, make([]byte, password+others)...), sizes: []int{1 << 16}}}
}

func TestLengthsOfConnectReplies(t *testing.T) {
	for name, row := range map[string]struct {
		password, others int
		want             Info
		fails            bool
	}{
		"the shortest": {want: Info{ID: 7, Timeout: time.Second}},
		"usual":        {password: 2, others: 1, want: Info{ID: 7, Timeout: time.Second, Password: []byte{0, 0}}},
		"the longest":  {others: connectReplyMax - connectReplyMin, want: Info{ID: 7, Timeout: time.Second}},
		"too long":     {others: connectReplyMax - connectReplyMin + 1, fails: true},
	} {
		got, err := requestSession(granting(row.password, row.others), time.Time{}, connectRequest{})
		require.Equal(t, row.want, got, name)
		require.Equal(t, row.fails, err != nil, name)
	}
}

func TestConnectRequestHasThePassword(t *testing.T) {
	for name, row := range map[string]struct{ password, sent []byte }{
		"a new session": {nil, make([]byte, passwordSize)},
		"a session":     {[]byte("password of 16 b"), []byte("password of 16 b")},
	} {
		c := granting(0, 0)
		_, err := requestSession(c, time.Time{}, connectRequest{session: Info{Password: row.password}})
		require.NoError(t, err)
		const before = lengthSize + 4 + 8 + 4 + 8
		want := append(binary.BigEndian.AppendUint32(nil, passwordSize), row.sent...)
		require.Equal(t, want, c.written[before:before+4+passwordSize], name)
	}
}

func TestFieldsOfRequests(t *testing.T) {
	var e encoder
	e.buffer(nil)
	e.buffer([]byte{})
	e.buffer([]byte{5})
	e.bool(false)
	e.bool(true)
	require.Equal(t, encoder{255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1}, e)
}

func TestListsThatFillAReply(t *testing.T) {
	var e encoder
	e.strings([]string{"", "", ""})
	d := decoder{rest: e}
	require.Equal(t, []string{"", "", ""}, d.strings())
	require.NoError(t, d.err)

	e = nil
	e.strings(nil)
	d = decoder{rest: e}
	require.Equal(t, []string{}, d.strings())
	require.NoError(t, d.err)

	e = nil
	all := []zk.ACL{{}, {}}
	e.acl(all)
	d = decoder{rest: e}
	require.Equal(t, all, d.acl())
	require.NoError(t, d.err)
	d = decoder{rest: e[:len(e)-1]}
	require.Nil(t, d.acl())
	require.ErrorIs(t, d.err, errMalformed)
}

func TestStatIsWholeOrNil(t *testing.T) {
	const size = 6*8 + 5*4
	d := decoder{rest: slices.Repeat([]byte{1}, size)}
	stat := d.stat()
	require.NoError(t, d.err)
	require.EqualValues(t, 0x0101010101010101, stat.Pzxid)
	require.Empty(t, d.rest)
	d = decoder{rest: make([]byte, size-1)}
	require.Nil(t, d.stat())
	require.ErrorIs(t, d.err, errMalformed)
}

func TestConnectionsWithABufferOfTheSystem(t *testing.T) {
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	require.True(t, buffered(&net.TCPConn{}))
	require.True(t, buffered(&net.UnixConn{}))
	require.True(t, buffered(tls.Client(&net.TCPConn{}, &tls.Config{ServerName: "a"})))
	require.False(t, buffered(pipe))
	require.False(t, buffered(tls.Client(pipe, &tls.Config{ServerName: "a"})))
}

func TestResultOfAContainerHasAStat(t *testing.T) {
	require.EqualValues(t, opCreate, resultOf(&zk.CreateRequest{}))
	require.EqualValues(t, opCreate2, resultOf(&zk.CreateRequest{Flags: zk.FlagContainer}))
	require.EqualValues(t, opCreate2, resultOf(&zk.CreateTTLRequest{}))
	require.EqualValues(t, opSetData, resultOf(&zk.SetDataRequest{}))
}

func TestModesOfPersistentWatches(t *testing.T) {
	for mode, recursive := range []bool{false, true} {
		frame := AddWatch("/a", recursive).frame
		require.EqualValues(t, mode, binary.BigEndian.Uint32(frame[len(frame)-4:]))
	}
}

// reliant is a client that counts only transactions.
type reliant struct{ *client }

func (reliant) Quorum() bool { return true }

func TestHeartbeatIsATransactionIfOnlyThoseCount(t *testing.T) {
	c := unstarted("a:1")
	require.EqualValues(t, opSync, c.heartbeat().op)
	c.cfg.Handler = reliant{}
	require.EqualValues(t, opMulti, c.heartbeat().op)
	c.cfg.Handler = &client{}
	c.contact.unconfirmed = at(time.Second)
	require.EqualValues(t, opMulti, c.heartbeat().op, "a connection that is not confirmed")
}

func TestAnswersThatCount(t *testing.T) {
	for name, row := range map[string]struct {
		quorum, unconfirmed, transaction, counts bool
	}{
		"a sync":                                 {counts: true},
		"a sync, but only transactions count":    {quorum: true},
		"a sync on an unconfirmed connection":    {unconfirmed: true},
		"a transaction":                          {transaction: true, counts: true},
		"a transaction, as only those count":     {quorum: true, transaction: true, counts: true},
		"a transaction, which confirms":          {unconfirmed: true, transaction: true, counts: true},
		"a transaction, which confirms and only": {quorum: true, unconfirmed: true, transaction: true, counts: true},
	} {
		c := unstarted("a:1")
		c.contact.setTimeouts(24*time.Second, 24*time.Second)
		sent := Now()
		c.contact.restart(sent.Add(-3 * time.Second))
		if row.unconfirmed {
			c.contact.reconnect(sent.Add(-time.Second))
		}
		c.RelyOnQuorum(row.quorum)
		c.noteAnswer(sent, row.transaction)
		require.Equal(t, row.counts, proven(c) == sent, name)
	}
}

func TestTogetherWithoutAConnection(t *testing.T) {
	c := unstarted("a:1")
	var lost error
	c.Together(func() { c.Ask(Sync("/"), func(r Reply) { lost = r.Err() }) })
	require.ErrorIs(t, lost, zk.ErrNoServer)
}
