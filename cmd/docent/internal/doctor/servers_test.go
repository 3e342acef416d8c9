package doctor

import (
	"net"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
)

// It also runs on real servers: ZOOKEEPER=1, or 3 for an ensemble.
func TestServersOfTheTests(t *testing.T) {
	c := testzk.Connected(t, testzk.Connect())
	session, err := c.Session(testzk.Context(t))
	require.NoError(t, err)
	path := testzk.Path(t)
	_, err = c.Create(testzk.Context(t), path, nil, framework.Parents())
	require.NoError(t, err)
	acquire(t, c, path+"/lock")
	cfg := config(c, nil, ServersOf(testzk.Connect())...)
	cfg.Dial, cfg.Timeout, cfg.Patience = new(net.Dialer).DialContext, session.Timeout(), testzk.Patience
	cfg.Root, cfg.Write = path, path+"/probe"
	all := examine(t, cfg)
	assert.Len(t, all["server"], strings.Count(testzk.Connect(), ",")+1)
	for _, f := range all["server"] {
		assert.Equal(t, OK, f.Result, f)
	}
	for _, check := range []string{
		"connection", "features", "clock", "locks", "sequence numbers", "layouts", "abandoned locks",
		"semaphores", "permissions",
	} {
		assert.Equal(t, OK, only(t, all, check).Result, all[check])
	}
	for _, check := range []string{"latency", "ttl nodes", "session timeout"} { // of the servers and the machine
		assert.Contains(t, []Result{OK, Warn}, only(t, all, check).Result, all[check])
	}
	_, err = c.Exists(testzk.Context(t), cfg.Write)
	assert.ErrorIs(t, err, zk.ErrNoNode)
}
