package framework_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-zk/docent/framework"
	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/retry"
	"github.com/docent-zk/docent/zktest/fault"
	"github.com/docent-zk/docent/zktest/proxy"
)

// logged returns a client and a record of its logs.
func logged(t *testing.T) (*framework.Client, *proxy.Proxy, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	c, p := proxied(t, framework.WithLogger(zap.New(core)), framework.WithRetry(retry.Never()))
	return c, p, logs
}

// closedAndLogged closes the client and waits for the last line of its session: Close itself waits for a second at
// most.
func closedAndLogged(t *testing.T, c *framework.Client, logs *observer.ObservedLogs) {
	t.Helper()
	require.NoError(t, c.Close())
	testzk.Eventually(t, func() bool { return logs.FilterMessage("session closed").Len() > 0 }, "not logged")
}

func TestOrdinaryCloseLogsNoWarning(t *testing.T) {
	t.Parallel()
	c, _, logs := logged(t)
	session(t, c)
	closedAndLogged(t, c, logs)
	ended := logs.FilterMessage("session ended").All()
	require.Len(t, ended, 1)
	require.Equal(t, zap.InfoLevel, ended[0].Level)
	for _, entry := range logs.All() {
		require.LessOrEqual(t, entry.Level, zap.InfoLevel, "%v", entry)
	}
}

func TestLossOfASessionLogsAWarning(t *testing.T) {
	t.Parallel()
	c, _, logs := logged(t)
	s := session(t, c)
	expire(t, s.ID())
	closes(t, s.Done(), "the end of the session")
	testzk.Eventually(t, func() bool { return logs.FilterMessage("session ended").Len() == 1 }, "not logged")
	require.Equal(t, zap.WarnLevel, logs.FilterMessage("session ended").All()[0].Level)
}

func TestLogNamesSessionsAsTheServersDo(t *testing.T) {
	t.Parallel()
	c, p, logs := logged(t)
	s := session(t, c)
	path := parent(t) + "/n"
	p.On(fault.Match{Op: fault.OpCreate}, fault.DropAfter())
	_, err := c.Create(testzk.Context(t), path, nil, framework.Protected())
	failed(t, err, framework.Unknown)
	testzk.Eventually(t, func() bool {
		return logs.FilterMessage("deleted a node that nothing owned").Len() == 1
	}, "not deleted")
	closedAndLogged(t, c, logs)
	for _, message := range []string{
		"session established", "state", "deleted a node that nothing owned", "session ended", "session closed",
	} {
		entries := logs.FilterMessage(message).All()
		require.NotEmpty(t, entries, message)
		require.Equal(t, fmt.Sprintf("%#x", uint64(s.ID())), entries[0].ContextMap()["session"], message)
		require.Equal(t, "docent", entries[0].LoggerName, message)
	}
}

// The lines of a client through slog have the same messages and fields as through zap.
func TestClientLogsToSlog(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	write := writerFunc(func(line []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(line)
	})
	logger := slog.New(slog.NewJSONHandler(write, nil)).With("app", "a")
	c := testzk.Connected(t, testzk.Connect(), framework.WithSlog(logger))
	id := fmt.Sprintf("%#x", uint64(session(t, c).ID()))
	c.Logger().Named("mine").Info("a line")
	require.NoError(t, c.Close())
	written := func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	testzk.Eventually(t, func() bool { return strings.Contains(written(), "session closed") }, "not logged")
	var messages []string
	for line := range strings.Lines(written()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		require.Equal(t, "a", fields["app"])
		require.Contains(t, []any{"docent", "docent.mine"}, fields["logger"])
		messages = append(messages, fields["msg"].(string))
		if fields["msg"] == "session established" {
			require.Equal(t, id, fields["session"])
			require.IsType(t, 0.0, fields["timeout"], "a duration")
		}
	}
	require.Contains(t, messages, "session established")
	require.Contains(t, messages, "a line")
	require.Contains(t, messages, "session closed")
}

type writerFunc func([]byte) (int, error)

func (fn writerFunc) Write(b []byte) (int, error) { return fn(b) }
