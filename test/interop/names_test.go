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

// scene is steps at a lock, with the same requests for every language, after which its nodes are looked at.
type scene struct {
	name  string
	steps func(s *set)
}

// set is where a scene is played, by one language.
type set struct {
	t       *testing.T
	fleet   *fleet
	speaker speaker
	path    string
}

func (s *set) contender(k kind) contender { return s.fleet.contender(s.t, s.speaker, k, s.path) }

func (s *set) holds(k kind) contender {
	c := s.contender(k)
	c.holds()
	return c
}

func (s *set) waits(k kind) { s.fleet.queues(s.contender(k), k, s.path) }

var scenes = []scene{
	{"mutex", func(s *set) { s.holds(mutexKind); s.waits(mutexKind); s.waits(mutexKind) }},
	{"readers", func(s *set) { s.holds(readKind); s.holds(readKind); s.waits(writeKind); s.waits(readKind) }},
	{"writer", func(s *set) { s.holds(writeKind); s.waits(readKind); s.waits(writeKind) }},
	{"downgrade", func(s *set) {
		c := s.holds(writeKind)
		s.waits(writeKind)
		c.gets(otherLockName, s.speaker, readKind, s.path)
		c.do("held", "acquire", otherLockName, -1)
	}},
	{"downgraded", func(s *set) {
		c := s.holds(writeKind)
		s.waits(writeKind)
		c.gets(otherLockName, s.speaker, readKind, s.path)
		c.do("held", "acquire", otherLockName, -1)
		c.releases()
	}},
	{"semaphore", func(s *set) { s.holds(twoKind); s.holds(twoKind) }},
	{"semaphore, one has left", func(s *set) { c := s.holds(twoKind); s.holds(twoKind); c.releases() }},
	{"semaphore, one waits", func(s *set) { s.holds(oneKind); s.waits(oneKind) }},
	{"shared limit", func(s *set) {
		s.holds(kind{"shared-semaphore", "", func(p string) []any { return []any{p, p + "/limit"} }, guarded})
	}},
	{"semaphore mutex", func(s *set) { s.holds(semMutexKind) }},
	{"multi-lock", func(s *set) { s.holds(multiKind); s.waits(multiKind) }},
	{"latch", func(s *set) { s.holds(latchKind); s.waits(latchKind) }},
	{"selector", func(s *set) { s.holds(selectorKind); s.waits(selectorKind) }},
}

// The scenes of which Curator leaves other nodes than docent, and why.
var otherwise = map[string]string{
	"semaphore":               noted,
	"semaphore, one has left": noted,
	"semaphore, one waits":    noted + "; and who waits for a permit has no lease yet: Curator's first has, and counts itself",
	"semaphore mutex":         noted,
	"downgrade":               behind,
	"downgraded":              behind,
}

const (
	noted  = "docent notes the number of permits in the semaphore's node, so that those who disagree find out"
	behind = "Curator 5.4 puts the reader behind the writers who wait, and lets them in; later ones do as docent does (CURATOR-621)"
)

// What Curator leaves is written down in testdata, and compared with what it leaves now.
func testNames(t *testing.T, f *fleet) {
	for _, s := range scenes {
		for _, who := range []speaker{java, docent} {
			t.Run(s.name+" of "+who.who, func(t *testing.T) {
				t.Parallel()
				f.play(t, s, who)
			})
		}
	}
}

// goldenFile is where the nodes of a scene are written down: of all languages together where they are the same.
func goldenFile(scene string, who speaker) string {
	name := strings.ReplaceAll(strings.ReplaceAll(scene, ",", ""), " ", "-")
	if _, differs := otherwise[scene]; differs {
		name += "." + who.who
	}
	return "testdata/nodes/" + name + ".txt"
}

// The same without Curator: docent leaves what is written down, on the in-process server.
func TestNodesAreCurators(t *testing.T) {
	srv := zktest.Start(t)
	f := &fleet{programs: programs{"docent": docentProgram()}, peers: map[string]*peer{}, observer: testzk.ObserverOf(t, srv.Addr())}
	f.peers["docent"] = f.start(t, "docent", srv.Addr(), calm, "none")
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) { f.play(t, s, docent) })
	}
}

// play plays a scene, and compares what nodes there are at its end, or soon after: whoever waits may have one still to make. A Curator that
// does as docent does is fine. Those who take part leave when the peer ends.
func (f *fleet) play(t *testing.T, s scene, who speaker) {
	dir := newPath(t) + "-" + who.who
	s.steps(&set{t, f, who, dir})
	golden := []string{goldenFile(s.name, who), goldenFile(s.name, docent)}
	var seen string
	for end := time.Now().Add(patience / 10); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		seen = f.draw(t, dir)
		if who == java { // it has no address to write where the machine's name cannot be resolved
			seen = strings.ReplaceAll(seen, "ephemeral, data empty", "ephemeral, data <address>")
		}
		if slices.ContainsFunc(golden, func(file string) bool { have, err := os.ReadFile(file); return err == nil && string(have) == seen }) {
			return
		}
	}
	requireFile(t, golden[0], seen)
}

// draw is the tree below a path, a line for each node.
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

// order is what siblings are sorted by: their numbers, and of the same number their kinds.
func order(name string) string {
	digits := name[max(0, len(name)-10):]
	return digits + uuid.ReplaceAllString(name, "")
}

func describe(data []byte, stat *zk.Stat, acl []zk.ACL) string {
	what := "persistent or container" // which no Stat tells
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
