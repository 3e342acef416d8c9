package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/listen"
)

// Two goroutines tell of the loss of a connection and of the watch on the next one. If the loss is
// told last, it changes nothing: the cache would wait for a watch that is set already.
func TestLossThatIsToldLateIsIgnored(t *testing.T) {
	c := &Cache{current: make(chan struct{})}
	f := &follower{Cache: c, inbox: listen.NewMailbox[func()]()}
	set := time.Now()
	s := &persistent{f: f, set: set}
	s.lost(set.Add(-time.Second))
	require.False(t, f.broken)
	s.lost(set.Add(time.Second))
	require.True(t, f.broken)
}
