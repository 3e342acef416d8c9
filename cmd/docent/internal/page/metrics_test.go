package page

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testlock"
	"github.com/docent-zk/docent/recipes/semaphore"
)

func TestTheExpositionIsEscaped(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := exposition{&out}
	e.family("a", "gauge", "back\\slash \"quote\" and\nnewline")
	e.sample("a", 1.5)
	e.sample("a", 1e9, label{"x", "back\\slash \"quote\" and\nnewline"}, label{"y", "\xff"})
	assert.Equal(t, `# HELP a back\\slash "quote" and\nnewline
# TYPE a gauge
a 1.5
a{x="back\\slash \"quote\" and\nnewline",y="`+"\ufffd"+`"} 1e+09
`, out.String())
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	client, other := connected(t), connected(t)
	s := newSite(t, client, nil)
	begun := time.Now()
	before := s.get("/metrics")
	if time.Since(begun) < scrapeWait { // otherwise the machine is busy
		assert.Contains(t, before.Body.String(), "docent_tree_up 1\n", "the first scrape waits for the first picture")
	}
	s.shows("/metrics", "docent_tree_up 1\n")
	before = s.get("/metrics")
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", before.Header().Get("Content-Type"))
	testlock.Held(t, newMutex(t, client, s.root+"/a"))
	testlock.Held(t, newMutex(t, client, s.root+"/b"))
	testlock.Queue(t, newMutex(t, other, s.root+"/b"))
	sem, err := semaphore.New(client, s.root+"/sem", 3)
	assert.NoError(t, err)
	testlock.Held(t, sem)
	create(t, client, s.root+"/old/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000000", "")
	s.shows("/metrics", "docent_tree_objects{kind=\"mutex\",state=\"waited-for\"} 1\n")
	s.shows("/metrics", "docent_tree_objects{kind=\"semaphore\",state=\"held\"} 1\n")
	body := s.shows("/metrics", "docent_tree_objects{kind=\"mutex\",state=\"abandoned\"} 1\n")
	for _, line := range []string{
		`docent_tree_objects{kind="mutex",state="held"} 1`, `docent_tree_holders{kind="mutex"} 3`,
		`docent_tree_waiters{kind="mutex"} 1`, `docent_tree_waiters{kind="semaphore"} 0`,
		`docent_tree_longest_wait_seconds{kind="semaphore"} 0`, `docent_tree_sessions 2`, `docent_tree_deadlocks 0`,
		`# TYPE docent_tree_poll_seconds summary`, `docent_tree_handovers{kind="mutex"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.Regexp(t, `docent_tree_longest_wait_seconds\{kind="mutex"\} [0-9.e-]+\n`, body)

	// The file is for the test of the alert rules in contrib/prometheus.
	body = s.shows("/metrics", `docent_tree_warnings{warning="persistent-node"} 1`)
	all, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	assert.Equal(t, string(all), strings.Join(seriesOf(body), "\n")+"\n")
}

var sample = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? [^ ]+$`)

// seriesOf returns the names of series, with those of their labels behind.
func seriesOf(exposition string) (all []string) {
	for _, found := range sample.FindAllStringSubmatch(exposition, -1) {
		line := found[1]
		for _, name := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(found[2], -1) {
			line += " " + name[1]
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
