package interop

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
)

var update = flag.Bool("update", false, "write the results to the files that they are compared with")

// This test measures which locks exclude each other. The migration guide has the table.
func testMatrix(t *testing.T, f *fleet) {
	all := []struct {
		name string
		speaker
	}{
		{"docent", docent},
		{"docent, `WithKazooNames`", docentAsKazoo},
		{"Curator", java},
		{"kazoo", kazoo},
		{"kazoo, `extra_lock_patterns`", awareKazoo},
		{"kazoo, Curator's names", kazooAsCurator},
	}
	head, rule := "| holds \\ tries |", "|---|"
	for _, rival := range all {
		head, rule = head+" "+rival.name+" |", rule+"---|"
	}
	table := []string{head + " go-zookeeper |", rule + "---|"}
	for _, holder := range all {
		row := "| " + holder.name + " |"
		for _, rival := range all {
			path := newPath(t)
			h, r := f.contender(t, holder.speaker, mutexKind, path), f.contender(t, rival.speaker, mutexKind, path)
			h.holds()
			r.tell("acquire", r.lock, 0)
			row += map[string]string{"held": " **gets in** |", "busy": " waits |"}[r.answer()]
			h.releases()
		}
		table = append(table, row+" "+f.plainDriver(t, holder.speaker)+" |")
	}
	requireTable(t, "../../docs/migration.md", "who waits for whom", table)
}

// plainDriver returns what the lock of the Go driver does while another client holds the lock.
func (f *fleet) plainDriver(t *testing.T, s speaker) string {
	path := newPath(t)
	holder := f.contender(t, s, mutexKind, path)
	holder.holds()
	conn := testzk.ObserverOf(t, f.ensemble.Connect())
	lock := zk.NewLock(conn.Conn, path, zk.WorldACL(zk.PermAll))
	locked := make(chan error, 1)
	go func() { locked <- lock.Lock() }() // ends with the connection
	testzk.Eventually(t, func() bool {
		return len(locked) > 0 || f.children(t, path) == 2
	}, "the driver is not in the queue")
	select {
	case err := <-locked:
		if err != nil {
			return "**fails**" // and its node remains
		}
		return "**gets in**"
	case <-time.After(500 * time.Millisecond):
	}
	holder.releases()
	select {
	case err := <-locked:
		require.NoError(t, err)
		require.NoError(t, lock.Unlock())
	case <-time.After(patience):
		require.FailNow(t, "the driver's lock does not return")
	}
	return "waits"
}

// requireTable compares lines with those between two comments of a file.
func requireTable(t *testing.T, file, name string, lines []string) {
	t.Helper()
	begin, end := "<!-- table: "+name+" -->\n", "<!-- end of table -->"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no table %q", file, name)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s: the table %q has no end", file, name)
	requireFile(t, file, before+begin+strings.Join(lines, "\n")+"\n"+end+after)
}

// requireFile compares a file with the wanted content.
func requireFile(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "%s: ZOOKEEPER=1 go test ./test/interop -update writes it", file)
}
