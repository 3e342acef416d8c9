package interop

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/recipes/inspect"
)

// operator runs the command docent on the server of a fleet.
type operator struct {
	t       *testing.T
	command string
	connect string
}

// run returns the standard output of a command line that succeeds.
func (o operator) run(line ...string) string {
	o.t.Helper()
	out, err := exec.Command(o.command, append([]string{"--connect", o.connect}, line...)...).Output()
	require.NoError(o.t, err, "%v: %v", line, err)
	return string(out)
}

// lock returns what docent show prints.
func (o operator) lock(path string) (shown inspect.Object) {
	o.t.Helper()
	require.NoError(o.t, json.Unmarshal([]byte(o.run("show", "-o", "json", path)), &shown))
	return shown
}

// breakHolder deletes the node that holds a lock.
func (o operator) breakHolder(path string) {
	o.t.Helper()
	token := o.lock(path).Nodes[0].Token.String()
	require.Contains(o.t, o.run("break", "--yes", path), token)
}

// testOperators has the command docent show, ask back and take away locks that Curator, kazoo and
// docent share.
func testOperators(t *testing.T, f *fleet) {
	o := operator{t, filepath.Join(t.TempDir(), "docent"), f.ensemble.Connect()}
	output, err := exec.Command("go", "build", "-o", o.command, "../../cmd/docent").CombinedOutput()
	require.NoError(t, err, string(output))
	root := newPath(t)
	a, b, old := root+"/a", root+"/b", root+"/kazoo"

	first := f.contender(t, java, mutexKind, a)
	first.do("revocable", "revocable", first.lock)
	first.holds()
	second := f.contender(t, docent, mutexKind, a)
	f.queues(second, mutexKind, a)
	third := f.contender(t, kazooAsCurator, mutexKind, a)
	third.gets(otherLockName, kazooAsCurator, mutexKind, b)
	third.do("held", "acquire", otherLockName, -1)
	f.queues(third, mutexKind, a)
	inKazoo := f.contender(t, kazoo, mutexKind, old)
	inKazoo.holds()
	afterKazoo := f.contender(t, docentAsKazoo, mutexKind, old)
	f.queues(afterKazoo, mutexKind, old)

	var listed []string
	for _, line := range strings.Split(strings.TrimSpace(o.run("ls", root)), "\n")[1:] {
		listed = append(listed, strings.Join(strings.Fields(strings.TrimPrefix(line, root))[:5], " "))
	}
	require.Equal(t, []string{"/a mutex waited-for 1 2", "/b mutex held 1 0", "/kazoo mutex waited-for 1 1"}, listed)
	shown := o.lock(a)
	require.Len(t, shown.Nodes, 3)
	require.Contains(t, o.run("show", a), shown.Nodes[0].Session.String())
	session := o.run("session", shown.Nodes[2].Session.String(), root)
	require.Equal(t, []string{"STATE", "holds", "waits"}, firstWords(session))

	o.run("revoke", a)
	require.Equal(t, "revoked "+first.lock, first.hear(first.events))
	o.breakHolder(a)
	second.wins()
	first.releases() // Curator does not notice
	o.breakHolder(a)
	third.wins()
	second.tell("release", second.lock)
	require.Contains(t, second.answer(), "lock node deleted")
	o.breakHolder(old)
	afterKazoo.wins()

	// Curator waits for kazoo's lock, and kazoo for Curator's.
	first.gets(otherLockName, java, mutexKind, root+"/c")
	first.do("held", "acquire", otherLockName, -1)
	third.gets("n", kazooAsCurator, mutexKind, root+"/c")
	third.tell("acquire", "n", -1)
	f.awaitNodes(t, mutexKind, root+"/c", 2)
	require.Empty(t, o.run("session", "--cycles", root))
	first.gets("n", java, mutexKind, b)
	first.tell("acquire", "n", -1)
	f.awaitNodes(t, mutexKind, b, 2)
	require.Equal(t, []string{"CYCLE", "1", "1"}, firstWords(o.run("session", "--cycles", root)))
	o.breakHolder(b)
	first.wins()
	require.Empty(t, o.run("session", "--cycles", root))
	first.do("released", "release", otherLockName)
	third.wins()
}

// firstWords returns the first word of each line.
func firstWords(text string) (words []string) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}
