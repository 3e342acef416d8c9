package page

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-zk/docent/recipes/inspect"
)

// exposition writes metrics in the text format of Prometheus, version 0.0.4.
type exposition struct{ io.Writer }

// label is a name and a value.
type label struct{ name, value string }

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// family begins a metric. Its samples follow.
func (e exposition) family(name, kind, help string) {
	_, _ = fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, helpEscapes.Replace(help), name, kind)
}

func (e exposition) sample(name string, value float64, labels ...label) {
	_, _ = io.WriteString(e, name)
	for i, l := range labels {
		_, _ = fmt.Fprintf(e, `%s%s="%s"`, sep(i, "{", ","), l.name,
			valueEscapes.Replace(strings.ToValidUTF8(l.value, "\ufffd")))
	}
	_, _ = fmt.Fprintf(e, "%s %s\n", sep(len(labels), "", "}"), strconv.FormatFloat(value, 'g', -1, 64))
}

// sep returns first for 0 and other for all other numbers.
func sep(i int, first, other string) string {
	if i == 0 {
		return first
	}
	return other
}

// single writes a metric with one sample.
func (e exposition) single(name, kind, help string, value float64) {
	e.family(name, kind, help)
	e.sample(name, value)
}

// each writes a metric with a sample for each key of m, in order.
func each[K comparable, V any](
	e exposition, m map[K]V, name, help string, sample func(K, V) (float64, []label),
) {
	e.family(name, "gauge", help)
	order := func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, key := range slices.SortedFunc(maps.Keys(m), order) {
		value, labels := sample(key, m[key])
		e.sample(name, value, labels...)
	}
}

// scrapeWait is for how long a scrape waits for the first picture. Prometheus waits for 10 s.
const scrapeWait = 8 * time.Second

// metrics answers with metrics. A scrape keeps the picture current, as a viewer does.
func (p *Page) metrics(w http.ResponseWriter, r *http.Request) {
	now, _ := p.tree.current(r.Context(), scrapeWait)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	p.expose(exposition{w}, now)
}

func (p *Page) expose(e exposition, now *picture) {
	p.tree.mu.Lock()
	work, viewers := p.tree.work, p.tree.viewers
	p.tree.mu.Unlock()
	e.single("docent_tree_up", "gauge", "1 if the other metrics are of the present tree.", number(p.tree.isLive()))
	e.single("docent_tree_viewers", "gauge", "Pages that follow changes.", float64(viewers))
	e.family("docent_tree_poll_seconds", "summary", "Readings of the tree, or of what has changed.")
	e.sample("docent_tree_poll_seconds_sum", work.time.Seconds())
	e.sample("docent_tree_poll_seconds_count", float64(work.readings))
	e.single("docent_tree_poll_failures_total", "counter", "Readings that have failed.", float64(work.failures))
	e.single("docent_tree_events_total", "counter", "Changes that the servers have told.", float64(work.events))
	if now.read.IsZero() {
		return
	}
	t := now.totals
	e.single("docent_tree_read_timestamp_seconds", "gauge", "When the tree was read last.",
		float64(now.read.UnixMilli())/1000)
	each(e, t.objects, "docent_tree_objects", "Locks and other objects by kind and state.",
		func(of kindState, n int) (float64, []label) {
			return float64(n), []label{{"kind", string(of.kind)}, {"state", string(of.state)}}
		})
	each(e, t.holders, "docent_tree_holders", "Nodes that hold.", count)
	each(e, t.waiters, "docent_tree_waiters", "Nodes that wait.", count)
	each(e, t.oldest, "docent_tree_longest_wait_seconds", "For how long the longest waiter waits.",
		func(kind inspect.Kind, since time.Time) (float64, []label) {
			age := time.Duration(0)
			if !since.IsZero() {
				age = max(0, time.Since(since))
			}
			return age.Seconds(), []label{{"kind", string(kind)}}
		})
	handed := map[inspect.Kind]int{}
	for _, i := range now.items {
		if n, counts := now.handoversOf(i.Object); counts && i.known() {
			handed[i.Kind] += n
		}
	}
	each(e, handed, "docent_tree_handovers", "Lock nodes that were deleted in the last minute.", count)
	e.family("docent_tree_warnings", "gauge", "Objects with a warning.")
	for _, warning := range slices.Sorted(maps.Keys(t.warnings)) {
		e.sample("docent_tree_warnings", float64(t.warnings[warning]), label{"warning", string(warning)})
	}
	e.single("docent_tree_unreadable", "gauge", "Nodes that could not be read.", float64(t.problems))
	e.single("docent_tree_sessions", "gauge", "Sessions with nodes of objects.", float64(t.sessions))
	e.single("docent_tree_deadlocks", "gauge", "Cycles of sessions that wait for each other.",
		float64(len(now.cycles)))
}

func count(kind inspect.Kind, n int) (float64, []label) {
	return float64(n), []label{{"kind", string(kind)}}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
