package recipes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/docent-zk/docent/recipes"
	"github.com/docent-zk/docent/recipes/internal/nodedata"
)

func TestOwnIdentityNamesThisProcess(t *testing.T) {
	data, err := nodedata.OwnIdentity()
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"host": host, "process": "recipes.test", "pid": float64(os.Getpid())}, fields)
	own := &recipes.Identity{Host: host, Process: "recipes.test", PID: os.Getpid()}
	require.Equal(t, own, recipes.ParseIdentity(data))
}

func TestParseIdentityReturnsNilForOtherData(t *testing.T) {
	for _, data := range []string{
		"", "10.0.0.7", recipes.RevokeMessage, "null", "[]", `"host"`, "7", "{", "{}",
		`{"process":"worker","pid":7}`, `{"host":""}`,
		`{"host":7}`, `{"host":"a","pid":"7"}`, `{"host":"a","pid":1e99}`, `{"host":"a"} and more`, "\xff\x00",
	} {
		require.Nil(t, recipes.ParseIdentity([]byte(data)), "%q", data)
	}
	require.Nil(t, recipes.ParseIdentity(nil))
	require.Equal(t, &recipes.Identity{Host: "a"}, recipes.ParseIdentity([]byte(`{"host":"a","colour":"red"}`)))
}

func TestParticipantString(t *testing.T) {
	since := time.Date(2024, 5, 6, 7, 8, 9, 123e6, time.UTC)
	p := recipes.Participant{Node: "/lock/n-1", Data: []byte("10.0.0.7"), Session: 0xabc, Token: 5, Since: since}
	require.Equal(t, `"10.0.0.7", node /lock/n-1, session 0xabc, since 2024-05-06T07:08:09.123Z`, p.String())
	ofServer224 := recipes.Participant{Session: -0x1fffffffffffffff}
	require.Contains(t, ofServer224.String(), "session 0xe000000000000001,")
	log := zapcore.NewMapObjectEncoder()
	require.NoError(t, ofServer224.MarshalLogObject(log))
	require.Equal(t, "0xe000000000000001", log.Fields["session"])
	p.Identity = &recipes.Identity{Host: "host-3", Process: "worker", PID: 4711}
	require.Equal(t, "worker[4711] on host-3, node /lock/n-1, session 0xabc, since 2024-05-06T07:08:09.123Z",
		fmt.Sprint(p))
}

// Data of other programs must not break a log line.
func TestParticipantStringQuotesForeignData(t *testing.T) {
	long := strings.Repeat("é", 1000)
	p := recipes.Participant{Node: "/lock/n-1", Data: []byte("a\nb\x1b[31m\xff" + long)}
	fields := zapcore.NewMapObjectEncoder()
	require.NoError(t, p.MarshalLogObject(fields))
	data := fields.Fields["data"].(string)
	require.True(t, strings.HasPrefix(data, "a?b?[31m?é"), data)
	require.LessOrEqual(t, len(data), 100)
	require.Less(t, len(p.String()), 300)

	p.Identity = &recipes.Identity{Host: "h\n" + long, Process: long, PID: 1}
	fields = zapcore.NewMapObjectEncoder()
	require.NoError(t, p.MarshalLogObject(fields))
	require.True(t, strings.HasPrefix(fields.Fields["host"].(string), "h?é"))
	require.LessOrEqual(t, len(fields.Fields["process"].(string)), 100)
	require.NotContains(t, fields.Fields, "data")
	require.Less(t, len(p.String()), 400)
}
