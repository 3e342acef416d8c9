package memnet

// endings are the scripts in which one end closes while the other continues.
var endings = map[string]script{
	"end behind the data": func(c, s *speaker) {
		s.write("hello")
		s.write("world")
		s.close()
		c.ended()
		c.arrived(10)
		c.read(7)
		c.read(7)
		c.read(7)
		c.read(7)
	},
	"write to a closed end, then read": func(c, s *speaker) {
		s.close()
		c.ended()
		c.write("a")
		c.gone()
		c.read(9)
		c.write("b")
		c.write("c")
		c.read(9)
	},
	"read, write to a closed end, read": func(c, s *speaker) {
		s.write("hello")
		s.close()
		c.ended()
		c.read(2)
		c.write("a")
		c.gone()
		c.read(9)
		c.read(9)
		c.write("b")
		c.closeWrite()
		c.close()
	},
	"nothing written to a closed end": func(c, s *speaker) {
		s.close()
		c.ended()
		c.write("")
		c.closeWrite()
		c.gone()
		c.write("")
		c.read(9)
		c.closeWrite()
		c.close()
	},
	"closed with data unread": func(c, s *speaker) {
		s.write("hello")
		c.write("x")
		s.arrived(1)
		s.close()
		c.gone()
		c.read(9)
		c.read(9)
		c.read(9)
		c.write("a")
		c.write("b")
		c.close()
	},
	"closed with data unread, write first": func(c, s *speaker) {
		c.write("xyz")
		s.arrived(3)
		s.read(2)
		s.close()
		c.gone()
		c.write("a")
		c.write("b")
		c.read(9)
		c.read(9)
	},
	"closed with data unread behind its own end": func(c, s *speaker) {
		s.write("hello")
		s.closeWrite()
		c.write("x")
		s.arrived(1)
		s.close()
		c.gone()
		c.read(9)
		c.read(9)
		c.write("a")
	},
	"closed with data unread and the peer's end": func(c, s *speaker) {
		c.write("x")
		c.closeWrite()
		s.arrived(1)
		s.ended()
		s.close()
		c.gone()
		c.read(9)
		c.read(9)
		c.write("a")
		c.closeWrite()
	},
	"closed with only the peer's end unread": func(c, s *speaker) {
		c.closeWrite()
		s.ended()
		s.close()
		c.gone()
		c.read(9)
		c.write("a")
		c.closeWrite()
	},
	"both sent, one closed": func(c, s *speaker) {
		c.write("1")
		s.write("2")
		c.arrived(1)
		c.close()
		s.gone()
		s.read(9)
		s.read(9)
		s.write("q")
	},
	"reset": func(c, s *speaker) {
		s.write("hello")
		c.arrived(5)
		s.Reset()
		c.gone()
		c.read(9)
		c.closeWrite()
		c.read(9)
		c.read(9)
		c.write("a")
		c.closeWrite()
		c.close()
		s.read(9)
		s.write("b")
		s.close()
	},
	"reset, write first": func(c, s *speaker) {
		s.Reset()
		c.gone()
		c.write("")
		c.write("a")
		c.read(9)
	},
	"reset of an end that has ended": func(c, s *speaker) {
		s.closeWrite()
		c.ended()
		s.Reset()
		c.gone()
		c.read(9)
		c.write("a")
		c.read(9)
	},
	"reset with the peer half closed": func(c, s *speaker) {
		c.closeWrite()
		s.ended()
		s.Reset()
		c.gone()
		c.write("a")
		c.read(9)
		c.read(9)
	},
	"half close": func(c, s *speaker) {
		c.write("question")
		c.closeWrite()
		c.closeWrite()
		c.write("more")
		c.write("")
		s.ended()
		s.arrived(8)
		s.read(20)
		s.read(20)
		s.write("answer")
		s.close()
		c.ended()
		c.read(20)
		c.read(20)
		c.closeWrite()
		c.close()
	},
	"half close, then close with the answer unread": func(c, s *speaker) {
		c.closeWrite()
		s.ended()
		s.write("answer")
		c.arrived(6)
		c.close()
		s.gone()
		s.read(9)
		s.write("z")
	},
	"half close, then close, then the answer": func(c, s *speaker) {
		c.closeWrite()
		c.close()
		s.ended()
		s.write("answer")
		s.gone()
		s.write("z")
		s.read(9)
	},
}
