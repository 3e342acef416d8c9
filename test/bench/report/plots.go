package report

import (
	"fmt"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Plot is the file of a plot, and its title.
type Plot struct{ File, Title string }

const (
	width    = 18 * vg.Centimeter
	height   = 10 * vg.Centimeter
	barWidth = 9 // points

	legendRoom = 4 * vg.Centimeter // from the right; the axis at the left is a part of it
)

// peersOf are all peers in plots, so that each has the same colour in all of them.
var peersOf = []string{"floor", "docent", "curator", "kazoo", "zk.Lock", "etcd"}

// group is a group of bars beside each other.
type group struct{ workload, name string }

// Plots draws the results of a setting into a folder.
func (r *Report) Plots(setting, folder string) (all []Plot, err error) {
	single := []group{{"mutex", "mutex"}, {"read", "read"}, {"write", "write"}, {"semaphore", "semaphore"},
		{"semaphore-mutex", "sem. mutex"}, {"multi", "multi-lock"}, {Distinct, "32 locks"}}
	contended := []group{{Contended(2), "2 clients"}, {Contended(16), "16 clients"}, {Contended(64), "64 clients"},
		{Readers, "90 % readers, 16"}}
	over := []group{{Handover(2), "2 clients"}, {Handover(16), "16 clients"}}
	for _, p := range []struct {
		name, title, unit string
		groups            []group
		measure           measure
		scale             float64
	}{
		{"uncontended", "uncontended", "acquire+release per second", single, throughput, 1},
		{"contended", "one lock", "acquire+release per second", contended, throughput, 1},
		{"hand-over", "hand-over, median", "ms", over, median, 1000},
	} {
		drawn, err := r.bars(setting, p.title, p.unit, p.groups, p.measure, p.scale)
		if err != nil {
			return nil, err
		}
		if drawn == nil {
			continue
		}
		file := fmt.Sprintf("%s-%s.svg", setting, p.name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if err := drawn.Save(width, height, filepath.Join(folder, file)); err != nil {
			return nil, err
		}
		all = append(all, Plot{file, p.title})
	}
	return all, nil
}

// bars returns a plot with a bar for each peer and group, and nil if nothing was measured.
func (r *Report) bars(setting, title, unit string, groups []group, m measure, scale float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = title, unit, 0
	// The names begin at the right of the colours. So a font that is wider than the one here covers none.
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, width-legendRoom
	var labels []string
	for _, g := range groups {
		labels = append(labels, g.name)
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	shown := false
	for i, name := range peersOf {
		values := make(plotter.Values, len(groups))
		there := false
		for j, g := range groups {
			if s := r.find(setting, g.workload, name); s != nil {
				values[j], there = scale*s.middle(m), true
			}
		}
		if !there {
			continue
		}
		bars, err := plotter.NewBarChart(values, vg.Points(barWidth))
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = plotutil.Color(i), 0
		bars.Offset = vg.Points(barWidth * (float64(i) - float64(len(peersOf)-1)/2))
		p.Add(bars)
		p.Legend.Add(name, bars)
		shown = true
	}
	if !shown {
		return nil, nil
	}
	p.Y.Max *= 1.35 // for the legend
	return p, nil
}
