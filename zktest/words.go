package zktest

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/docent-zk/docent/zktest/internal/proto"
)

// wordSize is the length of a four-letter word, which is sent in place of a frame's length prefix.
const wordSize = proto.PrefixSize

// words are the four-letter words with the functions that answer them. The texts are those of 3.8,
// byte for byte, where this server has the data.
var words map[string]func(*inquiry)

func init() {
	words = map[string]func(*inquiry){
		"conf": (*inquiry).conf, "cons": (*inquiry).cons, "crst": (*inquiry).crst, "dirs": (*inquiry).dirs,
		"dump": (*inquiry).dump, "envi": (*inquiry).envi, "gtmk": (*inquiry).gtmk, "hash": (*inquiry).hash,
		"isro": (*inquiry).isro, "mntr": (*inquiry).mntr, "ruok": (*inquiry).ruok, "srst": (*inquiry).srst,
		"srvr": (*inquiry).srvr, "stat": (*inquiry).stat, "stmk": (*inquiry).stmk, "wchc": (*inquiry).wchc,
		"wchp": (*inquiry).wchp, "wchs": (*inquiry).wchs,
	}
}

// inquiry is a word that is being answered. Callers of its methods hold srv.mu.
type inquiry struct {
	strings.Builder // the answer

	srv     *Server
	replica *replica // the server that was asked
	life    *lifetime
	asker   *conn // nil if the test asks
	more    []byte
}

// isWord reports whether s, the first four bytes of a connection, is a four-letter word. Other
// bytes are a length, even if it is absurd.
func isWord(s string) bool { return words[s] != nil }

// Command returns the answer to a four-letter word, such as "srvr" or "mntr", as a connection to
// [Server.Addr] would get it. The answer does not list a connection for the word itself. After
// "stmk" come the eight bytes of the mask. Command returns an error for an unknown word, and while
// the server is stopped. Some answers have less than the real server's: mntr has only the main
// figures, and hash is always as before the first digest. conf and dirs have no disk, and envi has
// no Java.
func (s *Server) Command(word string) (string, error) {
	name := word[:min(wordSize, len(word))]
	switch {
	case !isWord(name), len(word) > wordSize && name != "stmk":
		return "", fmt.Errorf("zktest: command %q: no such word", word)
	case name == "stmk" && len(word) != wordSize+maskSize:
		return "", fmt.Errorf("zktest: command %q: want %d bytes after stmk", word, maskSize)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return "", fmt.Errorf("zktest: command %q: the server is not running", word)
	}
	q := &inquiry{srv: s, replica: s.leader, life: s.life, more: []byte(word[wordSize:])}
	total := s.life.countersOf(s.leader)
	total.received++
	q.run(name)
	total.sent += packets(q)
	return q.String(), nil
}

// answerWord handles a connection that begins with a word.
func (c *conn) answerWord(word string) {
	more := c.maskOf(word)
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.tally.received++
	q := &inquiry{srv: c.srv, replica: c.replica, life: c.life, asker: c, more: more}
	q.run(word)
	c.tally.sent += packets(q) // after the answer, which does not count itself
	c.deliver(outFrame{[]byte(q.String()), false})
	c.end(flushAll)
}

// packets returns the number of packets of an answer: 0 if it is empty.
func packets(q *inquiry) int { return min(q.Len(), 1) }

// maskOf returns the bytes after stmk, if they have arrived together with the word. The real server
// does not wait for them either.
func (c *conn) maskOf(word string) []byte {
	if word != "stmk" || c.in.Buffered() < maskSize {
		return nil
	}
	mask := make([]byte, maskSize)
	_, _ = io.ReadFull(c.in, mask) // buffered
	return mask
}

func (q *inquiry) run(word string) {
	if !q.srv.cfg.answersWord(word) {
		q.line("%s is not executed because it is not in the whitelist.", word)
		return
	}
	words[word](q)
}

func (q *inquiry) line(format string, args ...any) { fmt.Fprintf(q, format+"\n", args...) }

func (q *inquiry) ruok() { q.WriteString("imok") }

func (q *inquiry) isro() {
	if q.srv.readOnly {
		q.WriteString("ro")
		return
	}
	q.WriteString("rw")
}

// The trace mask selects what the real server logs. Here it has no effect.
const (
	maskSize    = 8
	defaultMask = 0x132
)

func (q *inquiry) gtmk() { fmt.Fprint(q, q.counters().mask) }

func (q *inquiry) stmk() {
	if len(q.more) == maskSize {
		q.counters().mask = int64(binary.BigEndian.Uint64(q.more))
		q.gtmk()
	}
}

// hash answers nothing, as the real server does before its first digest. That server digests its
// tree at every 128th transaction; this one makes no digests.
func (q *inquiry) hash() {}

func (q *inquiry) srst() {
	q.counters().reset(q.life.connsOf(q.replica))
	q.line("Server stats reset.")
}

func (q *inquiry) crst() {
	for _, c := range q.life.connsOf(q.replica) {
		q.counters().absorb(c)
		c.resetTally()
	}
	q.line("Connection stats reset.")
}
