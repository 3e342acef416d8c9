package page

import (
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/docent-zk/docent/test/compare/speed"
)

const (
	width  = 18 * vg.Centimeter
	height = 11 * vg.Centimeter
	thick  = 8 // points
)

// Plot is a file with bars, one for each kind of lock.
type Plot struct {
	File, Title, Unit string
	number            func(speed.Row) float64
}

var plots = []Plot{
	{"alone.svg", "one program", "acquire+release per second", func(r speed.Row) float64 { return r.Alone }},
	{"contended.svg", "16 programs, one lock", "acquire+release per second",
		func(r speed.Row) float64 { return r.Contended }},
	{"hand-over.svg", "hand-over, median", "ms", func(r speed.Row) float64 { return r.HandOver.Seconds() * 1e3 }},
	{"waiting.svg", "15 waiters", "requests per second", func(r speed.Row) float64 { return r.Waiting }},
}

// plot draws all plots into a folder.
func (r *Results) plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range plots {
		drawn, err := r.bars(p)
		if err != nil {
			return err
		}
		if err := drawn.Save(width, height, filepath.Join(dir, p.File)); err != nil {
			return err
		}
	}
	return r.plotLost(filepath.Join(dir, "lost.svg"))
}

// bars draws one number of each kind. The names are on the left, because they are long.
func (r *Results) bars(p Plot) (*plot.Plot, error) {
	var names []string
	var values plotter.Values
	for _, row := range r.Speed {
		names, values = append([]string{row.Kind}, names...), append(plotter.Values{p.number(row)}, values...)
	}
	return horizontal(p.Title, p.Unit, names, map[string]plotter.Values{"": values}, []string{""})
}

// plotLost draws the number of faults under which each kind has lost an update.
func (r *Results) plotLost(file string) error {
	columns := []string{"plain", "token", "guard"}
	legend := map[string]string{"plain": "without a token", "token": "with the token", "guard": "in the service"}
	values, order := map[string]plotter.Values{}, []string{}
	var names []string
	for _, k := range r.kinds() {
		names = append([]string{k.Name}, names...)
	}
	for _, column := range columns {
		counts := make(plotter.Values, len(names))
		for _, row := range r.Safety {
			for i, name := range names {
				if n, _, _ := cell(row, column); name == row.Kind && row.Reason == "" {
					counts[i] += float64(n)
				}
			}
		}
		values[legend[column]] = counts
		order = append(order, legend[column])
	}
	drawn, err := horizontal("faults under which an update was lost", "faults", names, values, order)
	if err != nil {
		return err
	}
	return drawn.Save(width, height*3/2, file)
}

func horizontal(
	title, unit string, names []string, values map[string]plotter.Values, order []string,
) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.X.Min = title, unit, 0
	p.NominalY(names...)
	for i, label := range order {
		bars, err := plotter.NewBarChart(values[label], vg.Points(thick/float64(len(order))))
		if err != nil {
			return nil, err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, plotutil.Color(i), 0
		bars.Offset = vg.Points(thick / float64(len(order)) * (float64(len(order)-1)/2 - float64(i)))
		p.Add(bars)
		if label != "" {
			p.Legend.Add(label, bars)
		}
	}
	return p, nil
}
