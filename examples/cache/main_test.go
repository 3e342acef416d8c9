package main

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/examples/internal/exampletest"
	"github.com/docent-zk/docent/examples/internal/program"
	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
)

func TestMain(m *testing.M) { testzk.Main(m) }

func parsed(t *testing.T, args string) *config {
	t.Helper()
	return exampletest.Parsed(t, newConfig, args)
}

func TestDemo(t *testing.T) {
	e, err := program.NewEnsemble()
	require.NoError(t, err)
	defer e.Close()
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), e.Connect(), e.KillLeader, &out), "%s", &out)
	exampletest.Lines(t, out.String(),
		`The program works with 2 workers, timeout 1s\.`,
		`CHANGED: the timeout is 2s`,
		`changed /docent-examples/cache-\w+/timeout: 2 workers, timeout 2s`,
		`MISTAKE`,
		`workers: not valid: .*"many"`,
		`the program works with 2 workers, timeout 2s\.`,
		`the program works with 3 workers, timeout 2s\.`,
		`DELETED`,
		`removed /docent-examples/cache-\w+/timeout: 3 workers, timeout 5s`,
		`ELECTION`,
		`the program works with 3 workers, timeout 5s\.`,
		`the program works with 4 workers, timeout 5s\.`,
		`valid settings all the time`)
	children, err := e.Children(exampletest.Folder)
	require.NoError(t, err)
	require.Empty(t, children)
}

func TestDemoOnOtherServers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, parsed(t, "-session 10s").run(t.Context(), testzk.Connect(), nil, &out), "%s", &out)
	exampletest.Lines(t, out.String(), `their leader stays`, `valid settings all the time`)
}

// A server that is behind others has no settings yet when the cache is ready.
func TestSettingsMayComeAfterTheCacheIsReady(t *testing.T) {
	client := testzk.Connected(t, testzk.Connect())
	missing := make(chan error, 1)
	s, err := follow(client, testzk.Path(t), func(_ string, err error) {
		if err != nil {
			missing <- err
		}
	})
	require.NoError(t, err)
	defer s.close()
	require.ErrorContains(t, <-missing, "workers is missing")
	_, err = client.Create(t.Context(), s.path+"/workers", []byte("2"), framework.Parents())
	require.NoError(t, err)
	now, err := s.now(testzk.Context(t))
	require.NoError(t, err)
	require.Equal(t, values{2, defaultTimeout}, now)
}

func TestInterruptEndsTheDemo(t *testing.T) {
	for _, moment := range []string{"CHANGED", "DELETED"} {
		exampletest.Interrupt(t, moment, func(ctx context.Context, out io.Writer) error {
			return parsed(t, "-session 10s").run(ctx, testzk.Connect(), nil, out)
		})
	}
}

func TestDemoHasALimit(t *testing.T) {
	c := parsed(t, "")
	c.Limit = time.Nanosecond
	require.ErrorContains(t, c.run(t.Context(), testzk.Connect(), nil, io.Discard), "it took longer than 1ns")
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-session 999ms", "-session 11s"} {
		require.ErrorContains(t, parsed(t, args).run(t.Context(), "", nil, io.Discard), "want 1s to 10s")
	}
}
