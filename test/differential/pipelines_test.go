package differential

import "github.com/docent-zk/docent/internal/rawzk"

// These scenarios belong to the group of connections. They send requests before it is known whether
// there will be an answer.

func connectPipelinesRequests(s *script) {
	c := s.open("c")
	all := rawzk.Frame(newSession(defaultLongest).Encode())
	for i, op := range []rawzk.Op{
		rawzk.Create(s.path("x"), []byte("1"), rawzk.Open(), rawzk.Ephemeral),
		rawzk.GetData(s.path("x"), true),
		rawzk.SetData(s.path("x"), []byte("2"), 0),
		rawzk.GetEphemerals(""),
		rawzk.CloseSession(),
	} {
		c.expect(int32(i+1), op)
		all = append(all, rawzk.Frame(rawzk.Request(int32(i+1), op))...)
	}
	c.sendBytes(all)
	c.awaitConnected()
	c.end()
}

func closePipelinedBehindConnect(s *script) {
	a := s.connect("a")
	a.do(rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Ephemeral))
	a.drop()
	b := s.open("b")
	b.expect(1, rawzk.CloseSession())
	b.sendBytes(rawzk.Join(rawzk.Frame(sameSession(a, defaultLongest).Encode()),
		rawzk.Frame(rawzk.Request(1, rawzk.CloseSession()))))
	b.awaitConnected()
	b.end()
	c := s.connect("c")
	c.do(rawzk.Exists(s.path("x"), false))
}

// halfCloseEndsTheConnection shows that the request is applied. Whether the reply arrives is
// random.
func halfCloseEndsTheConnection(s *script) {
	a := s.connect("a")
	a.hidden = true
	a.send(rawzk.Create(s.path("x"), []byte("1"), rawzk.Open(), rawzk.Persistent))
	if err := a.conn.CloseWrite(); err != nil {
		s.giveUp("half close: %v", err)
	}
	a.end()
	b := s.attach("b", a) // follows the create of the same session
	b.do(rawzk.GetData(s.path("x"), false))
	b.close()
}

// requestsAfterCloseAreIgnored, or answered with SessionExpired if the server closes slowly. That
// takes zxids.
func requestsAfterCloseAreIgnored(s *script) {
	s.masked = true
	a := s.connect("a")
	a.pipeline(
		rawzk.CloseSession(),
		rawzk.Create(s.path("x"), nil, rawzk.Open(), rawzk.Persistent),
		rawzk.Ping(),
		rawzk.CloseSession(),
	)
	a.awaitAnswers(1)
	a.hidden = true
	a.end()
	b := s.connect("b")
	b.do(rawzk.Exists(s.path("x"), false))
}
