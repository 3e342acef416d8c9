package framework_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest/proxy"
)

func TestSentIsClosedWhenARequestHasLeft(t *testing.T) {
	c, p := through(t)
	s := session(t, c)
	held := p.On(proxy.Match{Op: proxy.OpExists}, proxy.Hold())
	defer held.Release()
	sent := s.Sent()
	go func() { _, _ = s.Exists(testzk.Context(t), "/") }()
	closes(t, sent, "nothing has left")
	require.NoError(t, held.Wait(testzk.Context(t)), "the request is not the one that has")
	closes(t, (&framework.Session{}).Sent(), "a zero session has nothing to send")
}
