package memnet

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// script is a conversation over one connection. The results of all calls must be the same over TCP
// and in memory.
type script func(c, s *speaker)

func TestAnswersLikeTCP(t *testing.T) {
	all := maps.Clone(endings)
	maps.Copy(all, calls)
	for name, script := range all {
		t.Run(name, func(t *testing.T) {
			talks := bothKinds(t)
			for _, k := range talks {
				script(k.client, k.server)
			}
			want, got := talks["tcp"].lines, talks["memory"].lines
			if len(want) == 0 || !slices.Equal(want, got) {
				t.Errorf("over TCP:\n  %s\nin memory:\n  %s", strings.Join(want, "\n  "), strings.Join(got, "\n  "))
			}
		})
	}
}

var past = time.Unix(1, 0)

// calls are the scripts about an end's own calls.
var calls = map[string]script{
	"own close": func(c, s *speaker) {
		c.close()
		c.close()
		c.closeWrite()
		c.read(9)
		c.read(0)
		c.write("a")
		c.write("")
		c.deadline(past)
		c.deadline(time.Time{})
		c.note("%v %v", c.LocalAddr(), c.RemoteAddr())
	},
	"close during a read": func(c, s *speaker) {
		outcome := c.readLater(9)
		c.close()
		outcome()
	},
	"reset during a read": func(c, s *speaker) {
		outcome := c.readLater(9)
		s.Reset()
		outcome()
	},
	"end during a read": func(c, s *speaker) {
		outcome := c.readLater(9)
		s.closeWrite()
		outcome()
	},
	"data during a read": func(c, s *speaker) {
		outcome := c.readLater(9)
		s.write("hello")
		outcome()
	},
	"deadline passed": func(c, s *speaker) {
		s.write("hello")
		c.arrived(5)
		c.deadline(past)
		c.read(9)
		c.read(0)
		c.write("a")
		c.write("")
		c.deadline(time.Time{})
		c.read(9)
		c.write("a")
		s.arrived(1)
		s.read(9)
	},
	"deadline passed, after a reset": func(c, s *speaker) {
		s.Reset()
		c.gone()
		c.deadline(past)
		c.read(9)
		c.write("a")
		c.closeWrite()
		c.deadline(time.Time{})
		c.read(9)
	},
	"deadline during a read": func(c, s *speaker) {
		outcome := c.readLater(9)
		c.deadline(past)
		outcome()
	},
	"deadline ahead": func(c, s *speaker) {
		c.deadline(time.Now().Add(10 * time.Millisecond))
		c.read(9)
		c.writeDeadlinePassed()
		c.write("a")
		c.read(9)
	},
	"deadlines of one direction": func(c, s *speaker) {
		_ = c.SetReadDeadline(past)
		c.write("a")
		c.read(9)
		_ = c.SetReadDeadline(time.Time{})
		_ = c.SetWriteDeadline(past)
		s.write("b")
		c.read(9)
		c.write("c")
	},
	"nothing": func(c, s *speaker) {
		c.read(0)
		c.write("")
		s.write("ab")
		c.arrived(2)
		c.read(0)
		c.read(1)
		s.closeWrite()
		c.ended()
		c.read(1)
		c.read(0)
		c.write("")
	},
}
