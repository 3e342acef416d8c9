package promdocent_test

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework/metrics"
	"github.com/docent-zk/docent/recipes/inspect"
)

// deploying returns the text of the page, and its blocks of YAML.
func deploying(t *testing.T) (page string, blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploying.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	require.Len(t, blocks, 3, "manifests, alert rules for programs, and those for docent serve")
	require.Equal(t, 3, strings.Count(string(text), "```yaml"))
	return string(text), blocks
}

// seriesNames returns the names of all series with their labels, path included. Those of docent serve
// are in a file, with which its own test compares them.
func seriesNames(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	page, err := os.ReadFile("../../cmd/docent/internal/page/testdata/metrics.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		names[words[0]] = words[1:]
	}
	require.Contains(t, names, "docent_tree_up")
	for _, i := range metrics.Instruments() {
		name := promdocent.NameOf(i)
		if i.Kind() != metrics.Histogram {
			names[name] = i.Labels()
			continue
		}
		names[name+"_sum"], names[name+"_count"] = i.Labels(), i.Labels()
		names[name+"_bucket"] = append(i.Labels(), "le")
	}
	return names
}

// rule is an alert rule of Prometheus.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func TestAlertRulesUseMetricsThatExist(t *testing.T) {
	_, blocks := deploying(t)
	alerts := map[string]bool{}
	for _, block := range blocks[1:] {
		checkRules(t, block, alerts)
	}
}

// checkRules checks a file of rules. alerts has the names that are taken.
func checkRules(t *testing.T, text string, alerts map[string]bool) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	require.Len(t, file.Groups, 1)
	require.NotEmpty(t, file.Groups[0].Name)
	require.NotEmpty(t, file.Groups[0].Rules)
	for _, r := range file.Groups[0].Rules {
		require.Regexp(t, `^Docent[A-Za-z]+$`, r.Alert)
		require.False(t, alerts[r.Alert], r.Alert)
		alerts[r.Alert] = true
		require.Regexp(t, `^(\d+[smh])?$`, r.For, r.Alert)
		require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		checkExpr(t, r)
	}
}

var (
	selector = regexp.MustCompile(`\bdocent_\w+\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`^(\w+)(=|!=|=~|!~)"([^"]*)"$`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	shown    = regexp.MustCompile(`\$labels\.(\w+)`)
)

// checkExpr requires that all names, labels and values of a rule exist.
func checkExpr(t *testing.T, r rule) {
	t.Helper()
	for _, pair := range []string{"()", "{}", "[]"} {
		require.Equal(t, strings.Count(r.Expr, pair[:1]), strings.Count(r.Expr, pair[1:]), r.Expr)
	}
	var labels []string // that all series of the rule have
	selectors := selector.FindAllStringSubmatch(r.Expr, -1)
	require.NotEmpty(t, selectors, r.Expr)
	for n, s := range selectors {
		name, _, _ := strings.Cut(s[0], "{")
		of, exists := seriesNames(t)[name]
		require.True(t, exists, "%s: there is no %s", r.Alert, name)
		if n == 0 {
			labels = of
		}
		labels = slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return !slices.Contains(of, label) })
		if s[1] == "" {
			continue
		}
		for _, text := range strings.Split(s[1], ",") {
			m := matcher.FindStringSubmatch(strings.TrimSpace(text))
			require.NotNil(t, m, "%s: %s", r.Alert, text)
			require.Contains(t, of, m[1], r.Alert)
			for _, value := range strings.Split(m[3], "|") {
				require.Contains(t, valuesOf(name, m[1]), value, r.Alert)
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(r.Expr, -1) {
		labels = strings.Split(by[1], ", ")
		for _, label := range labels {
			require.Contains(t, seriesNames(t)[strings.Split(selectors[0][0], "{")[0]], label, r.Alert)
		}
	}
	for _, text := range r.Annotations {
		for _, label := range shown.FindAllStringSubmatch(text, -1) {
			require.Contains(t, labels, label[1], "%s: the alert has no such label", r.Alert)
		}
	}
}

// valuesOf returns values that a label of a series can have.
func valuesOf(series, label string) []string {
	if strings.HasPrefix(series, "docent_tree_") {
		return map[string][]string{
			"kind": {
				string(inspect.KindMutex), string(inspect.KindRWLock), string(inspect.KindSemaphore),
				string(inspect.KindLatch),
			},
			"state": {
				string(inspect.StateFree), string(inspect.StateHeld), string(inspect.StateWaitedFor),
				string(inspect.StateAbandoned),
			},
			"warning": {
				string(inspect.WarnForeign), string(inspect.WarnMixedRecipes), string(inspect.WarnMixedLayouts),
				string(inspect.WarnPersistent), string(inspect.WarnSequence), string(inspect.WarnOverLimit),
			},
		}[label]
	}
	return map[string][]string{
		"state": metrics.States(),
		"recipe": {
			"mutex", "rwlock-read", "rwlock-write", "semaphore", "semaphore-mutex", "multilock", "election", "latch",
		},
		"cause": {
			metrics.CauseReleased, metrics.CauseSessionLost, metrics.CauseNodeDeleted, metrics.CauseSuspended,
			metrics.CauseForeignLost, metrics.CauseClosed, metrics.CauseExpired, metrics.CauseDeadline,
			metrics.CauseAuthFailed,
		},
		"path":    {"/orders"},
		"outcome": {metrics.OutcomeAcquired, metrics.OutcomeNotAcquired, metrics.OutcomeFailed},
	}[label]
}

// Pages name no metric that does not exist, and the rules use each metric that is a reason to act.
func TestPagesNameMetricsThatExist(t *testing.T) {
	var dotted []string
	for _, i := range metrics.Instruments() {
		dotted = append(dotted, i.Name())
	}
	names := seriesNames(t)
	for _, file := range []string{
		"docs/deploying.md", "docs/observability.md", "docs/operations.md", "contrib/prometheus/README.md",
	} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`docent_\\w+").FindAllString(string(text), -1) {
			name = name[1:]
			_, series := names[name]
			_, histogram := names[name+"_sum"]
			require.True(t, series || histogram || name == "docent_recipe", "%s: there is no %s", file, name)
		}
		for _, name := range regexp.MustCompile("`docent\\.(?:lock|session|client|connection|deletions)\\.[a-z]+`").
			FindAllString(string(text), -1) {
			require.Contains(t, dotted, strings.Trim(name, "`"), file)
		}
	}
}

// probe is a part of a manifest.
type probe struct {
	HTTPGet        struct{ Path string } `yaml:"httpGet"`
	TimeoutSeconds int                   `yaml:"timeoutSeconds"`
}

// manifest is what the test looks at.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		ClusterIP string `yaml:"clusterIP"`
		Ports     []struct{ Port int }
		Selector  any
		Template  struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Env []struct{ Name, Value string }

					Readiness probe `yaml:"readinessProbe"`
					Liveness  probe `yaml:"livenessProbe"`
				}
			}
		}
	}
}

func TestManifestsParse(t *testing.T) {
	_, blocks := deploying(t)
	found := map[string]manifest{}
	for decoder := yaml.NewDecoder(strings.NewReader(blocks[0])); ; {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NotEmpty(t, m.APIVersion)
		found[m.Kind] = m
	}
	require.Len(t, found, 2)
	service, program := found["Service"], found["Deployment"].Spec.Template.Spec
	require.Equal(t, "None", service.Spec.ClusterIP)
	require.Equal(t, 2181, service.Spec.Ports[0].Port)
	require.Len(t, program.Containers, 1)
	container := program.Containers[0]
	require.Contains(t, container.Env[0].Value, service.Metadata.Name+":2181")
	require.Greater(t, program.Grace, 35, "a session timeout and 5 s, and time for work")
	require.NotEqual(t, container.Readiness.HTTPGet.Path, container.Liveness.HTTPGet.Path)
	require.Greater(t, container.Readiness.TimeoutSeconds, 1, "the handler waits for a second")
}
