package clients

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	tick           = 200 * time.Millisecond
	reaperInterval = "200" // ms between two checks for containers and TTL nodes to delete
	patience       = time.Minute
	pause          = 5 * time.Millisecond // between two checks of a condition
)

// server is the server of the scripts.
type server interface {
	Addr() string
	Stop() error
	Start() error
	Expire(id int64, password []byte) error
}

// target is a kind of server.
type target struct {
	name  string
	start func(t *testing.T) server // the server is closed at the end of the test
}

// onEach runs a script on each kind of server, and compares the transcripts.
func onEach(t *testing.T, script func(t *testing.T, c *control) transcript) {
	var seen []transcript
	for _, target := range targets() {
		t.Run(target.name, func(t *testing.T) {
			seen = append(seen, script(t, newControl(t, target.start(t))))
		})
	}
	if t.Failed() || len(seen) < 2 {
		return
	}
	t.Run("same", func(t *testing.T) {
		for _, other := range seen[1:] {
			seen[0].requireSame(t, other)
		}
	})
}

// transcript is the output of a script, one line for each check.
type transcript []string

func (s transcript) requireChecks(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, s, "the script checked nothing")
	require.False(t, slices.Contains(s, ""), "a check without a name: %q", s)
}

// requireSame compares line by line, so that only the difference is shown.
func (s transcript) requireSame(t *testing.T, other transcript) {
	t.Helper()
	for i := range min(len(s), len(other)) {
		assert.Equal(t, s[i], other[i], "the servers answered differently")
	}
	require.Len(t, other, len(s), "one of the servers saw fewer checks")
}
