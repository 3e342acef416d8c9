package clients

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/zktest"
	"github.com/docent-zk/docent/zktest/ensemble"
)

func targets() []target {
	return []target{{"real", startReal}, {"zktest", startFake}}
}

// real is the installed server.
type real struct {
	t *testing.T
	*ensemble.Server
}

func startReal(t *testing.T) server {
	e := ensemble.Start(t, 1, ensemble.WithTick(tick), ensemble.WithSessionTimeouts(2*tick, time.Minute),
		ensemble.WithProperty("znode.container.checkIntervalMs", reaperInterval))
	return &real{t, e.Servers()[0]}
}

func (r *real) Start() error { return r.Server.Start(limited(r.t)) }

func (r *real) Expire(id int64, password []byte) error {
	return endSession(r.Addr(), id, password)
}

// fake is the server under test.
type fake struct{ *zktest.Server }

func startFake(t *testing.T) server {
	return fake{zktest.Start(t, zktest.WithCompat(installed(t)), zktest.WithTick(tick),
		zktest.WithSessionTimeouts(2*tick, time.Minute),
		zktest.WithConfig("znode.container.checkIntervalMs", reaperInterval),
		zktest.WithConfig("extendedTypesEnabled", "true"))}
}

// installed returns the version of the real server, whose behaviour the fake must have.
func installed(t *testing.T) zktest.Compat {
	t.Helper()
	found, err := ensemble.Find()
	require.NoError(t, err)
	if strings.HasPrefix(found.Version, "3.8.") {
		return zktest.V38
	}
	return zktest.V39
}

func (f fake) Stop() error {
	f.Server.Stop()
	return nil
}

func (f fake) Expire(id int64, _ []byte) error {
	session, found := f.Session(id)
	if !found {
		return fmt.Errorf("no session %#x", id)
	}
	return session.Expire()
}
