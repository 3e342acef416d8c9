package conn

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOnlyAReplyWithoutErrorAndBodyConfirmsTheEndOfASession(t *testing.T) {
	for name, row := range map[string]struct {
		length, code uint32
		body         []byte
	}{
		"an error":         {length: replyHeaderSize, code: 0xfffffff9},
		"a body":           {length: replyHeaderSize + 3, body: []byte("abc")},
		"a body, withheld": {length: replyHeaderSize + 100},
		"no header":        {length: replyHeaderSize - 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(p *peer) {
				if p.number > 0 {
					p.answerAll(7, long)
					return
				}
				p.grant(7, long)
				for f, ok := p.next(); ok; f, ok = p.next() {
					reply := binary.BigEndian.AppendUint32(nil, row.length)
					reply = binary.BigEndian.AppendUint32(reply, uint32(f.xid))
					reply = append(reply, make([]byte, zxidSize)...)
					reply = binary.BigEndian.AppendUint32(reply, row.code)
					_, _ = p.Write(append(reply, row.body...))
				}
			})
			c := connect(t, Config{}, s.addr())
			c.awaitSession(t, 7)
			require.True(t, c.EndSession(t.Context()))
			require.Equal(t, 2, s.accepted(), "want the first connection closed and the next server asked")
			closed(t, c)
		})
	}
}

func TestNoAttemptToConnectFollowsTheEndOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dial := serveInMemory(t, func(p *peer) { p.answerAll(7, long) })
		c := connect(t, Config{Dial: dial}, "a:1", "b:1")
		c.awaitSession(t, 7)
		require.True(t, c.EndSession(t.Context()))
		c.awaitIdle(t)
		require.Equal(t, 1, s.accepted())
		require.Empty(t, c.ended)
	})
}
