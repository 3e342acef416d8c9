package mutex_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/docent-zk/docent/internal/testzk"
)

// A reply has the zxid of the last transaction that the server has applied. That is the zxid of the
// create itself, because a server applies one transaction at a time.
func TestTokenIsTheCzxidOfTheNodeUnderContention(t *testing.T) {
	path, other := testzk.Path(t), testzk.Path(t)
	var all sync.WaitGroup
	for i := range 8 {
		c := testzk.Connected(t, testzk.Connect())
		lockPath := path
		if i%2 == 1 {
			lockPath = other
		}
		mu := newMutex(t, c, lockPath)
		all.Go(func() {
			for range 25 {
				hold, err := mu.Acquire(testzk.Context(t))
				if !assert.NoError(t, err) {
					return
				}
				_, stat, err := c.Get(testzk.Context(t), hold.Path())
				if assert.NoError(t, err) {
					assert.Equal(t, stat.Czxid, hold.Token())
				}
				assert.NoError(t, hold.Release())
			}
		})
	}
	all.Wait()
}
