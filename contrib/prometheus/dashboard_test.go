package promdocent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	promdocent "github.com/docent-zk/docent/contrib/prometheus"
	"github.com/docent-zk/docent/framework/metrics"
)

// panel is a part of a dashboard of Grafana.
type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ Type, UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		Expr         string
		LegendFormat string
		RefID        string
	}
}

// variable is a choice at the top of a dashboard.
type variable struct {
	Name, Type, Definition string
}

func dashboard(t *testing.T) (panels []panel, variables []variable) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d struct {
		Title, UID    string
		SchemaVersion int
		Templating    struct{ List []variable }
		Panels        []panel
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "docent", d.UID)
	require.Positive(t, d.SchemaVersion)
	return d.Panels, d.Templating.List
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	panels, variables := dashboard(t)
	// What the variables stand for.
	expand := strings.NewReplacer("$__rate_interval", "5m", "$recipe", "mutex", "$path", "/orders")
	used := map[string]bool{}
	check := func(title, expr string) {
		expanded := expand.Replace(expr)
		require.NotContains(t, expanded, "$", title)
		checkExpr(t, rule{Alert: title, Expr: expanded})
		for _, s := range selector.FindAllStringSubmatch(expanded, -1) {
			name, _, _ := strings.Cut(s[0], "{")
			used[name] = true
		}
	}
	for _, p := range panels {
		require.NotEmpty(t, p.Title)
		if p.Type == "row" {
			continue
		}
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for i, target := range p.Targets {
			require.Equal(t, string(rune('A'+i)), target.RefID, p.Title)
			require.NotEmpty(t, target.LegendFormat, p.Title)
			check(p.Title, target.Expr)
		}
	}
	for _, v := range variables {
		if v.Type == "query" {
			expr := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")")
			expr, label, _ := strings.Cut(expr, ", "+v.Name)
			require.Empty(t, label)
			check(v.Name, expr)
		}
	}
	for _, i := range metrics.Instruments() {
		name := promdocent.NameOf(i)
		require.True(t, used[name] || used[name+"_bucket"] || used[name+"_count"], "no panel shows %s", name)
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	panels, _ := dashboard(t)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, cells[cell], p.Title)
				cells[cell] = p.Title
			}
		}
	}
}
