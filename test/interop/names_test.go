package interop

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/zktest"
)

// scenario is steps at a lock, with the same requests for every language. Afterwards the nodes are
// compared.
type scenario struct {
	name  string
	steps func(s *scenarioRun)
}

// scenarioRun is a scenario with one language.
type scenarioRun struct {
	t       *testing.T
	fleet   *fleet
	speaker speaker
	path    string
}

func (s *scenarioRun) contender(k kind) contender {
	return s.fleet.contender(s.t, s.speaker, k, s.path)
}

func (s *scenarioRun) holds(k kind) contender {
	c := s.contender(k)
	c.holds()
	return c
}

func (s *scenarioRun) waits(k kind) { s.fleet.queues(s.contender(k), k, s.path) }

var scenarios = []scenario{
	{"mutex", func(s *scenarioRun) { s.holds(mutexKind); s.waits(mutexKind); s.waits(mutexKind) }},
	{"readers", func(s *scenarioRun) { s.holds(readKind); s.holds(readKind); s.waits(writeKind); s.waits(readKind) }},
	{"writer", func(s *scenarioRun) { s.holds(writeKind); s.waits(readKind); s.waits(writeKind) }},
	{"downgrade", func(s *scenarioRun) {
		c := s.holds(writeKind)
		s.waits(writeKind)
		c.gets(otherLockName, s.speaker, readKind, s.path)
		c.do("held", "acquire", otherLockName, -1)
	}},
	{"downgraded", func(s *scenarioRun) {
		c := s.holds(writeKind)
		s.waits(writeKind)
		c.gets(otherLockName, s.speaker, readKind, s.path)
		c.do("held", "acquire", otherLockName, -1)
		c.releases()
	}},
	{"semaphore", func(s *scenarioRun) { s.holds(twoKind); s.holds(twoKind) }},
	{"semaphore, one has left", func(s *scenarioRun) { c := s.holds(twoKind); s.holds(twoKind); c.releases() }},
	{"semaphore, one waits", func(s *scenarioRun) { s.holds(oneKind); s.waits(oneKind) }},
	{"shared limit", func(s *scenarioRun) {
		s.holds(kind{"shared-semaphore", "", func(p string) []any { return []any{p, p + "/limit"} }, guarded})
	}},
	{"semaphore mutex", func(s *scenarioRun) { s.holds(semMutexKind) }},
	{"multi-lock", func(s *scenarioRun) { s.holds(multiKind); s.waits(multiKind) }},
	{"latch", func(s *scenarioRun) { s.holds(latchKind); s.waits(latchKind) }},
	{"selector", func(s *scenarioRun) { s.holds(selectorKind); s.waits(selectorKind) }},
}

// Curator leaves other nodes than docent in these scenarios, for the given reasons.
var otherwise = map[string]string{
	"semaphore":               noted,
	"semaphore, one has left": noted,
	"semaphore, one waits": noted + "; and a waiter for a permit has no lease yet, but Curator's first waiter " +
		"has one and counts itself",
	"semaphore mutex": noted,
	"downgrade":       behind,
	"downgraded":      behind,
}

const (
	noted  = "docent notes the number of permits in the semaphore's node, so that clients with another number notice it"
	behind = "Curator 5.4 puts the reader behind the waiting writers, and grants them the lock; later versions do " +
		"as docent does (CURATOR-621)"
)

// The nodes of Curator are stored in testdata. This test compares them with the present ones.
func testNames(t *testing.T, f *fleet) {
	for _, s := range scenarios {
		for _, of := range []speaker{java, docent} {
			t.Run(s.name+" of "+of.language, func(t *testing.T) {
				t.Parallel()
				f.compareNodes(t, s, of)
			})
		}
	}
}

// goldenFile returns the name of the file with the nodes of a scenario. There is one file for all
// languages if their nodes are the same.
func goldenFile(scenario string, of speaker) string {
	name := strings.ReplaceAll(strings.ReplaceAll(scenario, ",", ""), " ", "-")
	if _, differs := otherwise[scenario]; differs {
		name += "." + of.language
	}
	return "testdata/nodes/" + name + ".txt"
}

// TestNodesAreCurators does the same without Curator: docent's nodes on the in-process server are
// those in testdata.
func TestNodesAreCurators(t *testing.T) {
	srv := zktest.Start(t)
	f := &fleet{programs: programs{"docent": docentProgram()}, peers: map[string]*peer{},
		observer: testzk.ObserverOf(t, srv.Addr())}
	f.peers["docent"] = f.start(t, "docent", srv.Addr(), calm, "none")
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { f.compareNodes(t, s, docent) })
	}
}

// compareNodes runs a scenario and compares the nodes at its end, or soon after, because a waiter
// may still create one. The nodes of a Curator that does as docent does are accepted, too. The
// locks are released when the peer ends.
func (f *fleet) compareNodes(t *testing.T, s scenario, of speaker) {
	dir := newPath(t) + "-" + of.language
	s.steps(&scenarioRun{t, f, of, dir})
	golden := []string{goldenFile(s.name, of), goldenFile(s.name, docent)}
	var seen string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		seen = f.draw(t, dir)
		// Java has no address to write if the machine's name cannot be resolved.
		if of == java {
			seen = strings.ReplaceAll(seen, "ephemeral, data empty", "ephemeral, data <address>")
		}
		if slices.ContainsFunc(golden, func(file string) bool {
			have, err := os.ReadFile(file)
			return err == nil && string(have) == seen
		}) {
			return
		}
	}
	requireFile(t, golden[0], seen)
}

// draw returns the tree below a path, with a line for each node.
func (f *fleet) draw(t *testing.T, dir string) string {
	var lines []string
	f.walk(t, dir, "", &lines)
	return strings.Join(lines, "\n") + "\n"
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

func (f *fleet) walk(t *testing.T, dir, indent string, lines *[]string) {
	data, stat, err := f.observer.Get(dir)
	require.NoError(t, err)
	acl, _, err := f.observer.GetACL(dir)
	require.NoError(t, err)
	name := uuid.ReplaceAllString(path.Base(dir), "<uuid>")
	if indent == "" {
		name = "<path>"
	}
	*lines = append(*lines, indent+name+" "+describe(data, stat, acl))
	children, _, err := f.observer.Children(dir)
	require.NoError(t, err)
	slices.SortFunc(children, func(a, b string) int { return strings.Compare(order(a), order(b)) })
	for _, child := range children {
		f.walk(t, dir+"/"+child, indent+"  ", lines)
	}
}

// order returns the key by which siblings are sorted: their sequence numbers, and then their kinds.
func order(name string) string {
	digits := name[max(0, len(name)-10):]
	return digits + uuid.ReplaceAllString(name, "")
}

func describe(data []byte, stat *zk.Stat, acl []zk.ACL) string {
	what := "persistent or container" // a Stat does not have this
	if stat.EphemeralOwner != 0 {
		what = "ephemeral"
	}
	what += ", data " + show(data)
	if !slices.Equal(acl, zk.WorldACL(zk.PermAll)) {
		what += fmt.Sprintf(", ACL %v", acl)
	}
	return what
}

func show(data []byte) string {
	switch text := string(data); {
	case text == "":
		return "empty"
	case net.ParseIP(text) != nil:
		return "<address>"
	case strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0:
		return fmt.Sprintf("%q", text)
	}
	return "0x" + hex.EncodeToString(data)
}
