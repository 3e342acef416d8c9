package page

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/safety"
	"github.com/docent-zk/docent/test/compare/speed"
)

//go:embed *.md.tmpl
var templates embed.FS

// Pages are the names of the pages, each with its language.
var Pages = map[string]string{"comparison.md": "en", "comparison.zh-CN.md": "zh"}

// Write writes the pages and the plots into the folder of the pages. It fails if the text of a page claims
// what the results do not have.
func (r *Results) Write(docs string) error {
	if err := r.plot(filepath.Join(docs, folder)); err != nil {
		return err
	}
	for name, language := range Pages {
		text, err := r.Text(language)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Text returns a page.
func (r *Results) Text(language string) (string, error) {
	w := writer{r, languages[language]}
	t, err := template.New(language+".md.tmpl").Funcs(template.FuncMap{
		"claim": w.claim, "none": w.none, "speed": w.speed, "times": w.times, "free": w.free,
	}).ParseFS(templates, language+".md.tmpl")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{"Facts": r.Facts, "Summary": w.summary(), "Sections": w.sections(),
		"Speed": w.speeds(), "Absent": w.absent(), "Unmeasured": w.unmeasured(), "Plots": plots,
		"Folder": folder, "Runs": len(r.runs())})
	return b.String(), err
}

type writer struct {
	*Results
	words
}

func anchor(parts ...string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Join(parts, "-"), ".", "-"))
}

func link(text, to string) string { return fmt.Sprintf("[%s](#%s)", text, to) }

// claim returns a link to a row, and an error if the row was not run or has another number.
func (w writer) claim(kind, fault, column string, want int, text string) (string, error) {
	row, err := w.row(kind, safety.Fault(fault))
	if err != nil {
		return "", err
	}
	got, there, err := cell(row, column)
	if err == nil && (!there || got != want) {
		err = fmt.Errorf("%s, %s: %s is %d, and the page claims %d", kind, fault, column, got, want)
	}
	return link(text, anchor(kind, fault)), err
}

// none returns a link to all rows of a kind, and an error if an update was lost in any.
func (w writer) none(kind, column, text string) (string, error) {
	for _, row := range w.Safety {
		if row.Kind != kind || row.Reason != "" {
			continue
		}
		if n, there, err := cell(row, column); err != nil || !there || n > 0 {
			return "", fmt.Errorf("%s, %s: %s is %d, and the page claims none (%w)", kind, row.Fault, column, n, err)
		}
	}
	return link(text, anchor(kind)), nil
}

// free returns how long it took until a lock was free, as a link to the row.
func (w writer) free(kind, fault string) (string, error) {
	row, err := w.row(kind, safety.Fault(fault))
	if err == nil && row.Free == 0 {
		err = fmt.Errorf("%s, %s: it did not become free", kind, fault)
	}
	return link(duration(row.Free), anchor(kind, fault)), err
}

func (w writer) measured(kind string) (speed.Row, error) {
	i := slices.IndexFunc(w.Speed, func(r speed.Row) bool { return r.Kind == kind })
	if i < 0 {
		return speed.Row{}, fmt.Errorf("%s: its speed was not measured", kind)
	}
	return w.Speed[i], nil
}

// figures are the numbers of the table of speeds, as text.
func figures(r speed.Row) map[string]string {
	return map[string]string{
		"alone": number(r.Alone), "p50": duration(r.P50), "p99": duration(r.P99), "contended": number(r.Contended),
		"fairness": number(r.Fairness), "hand-over": duration(r.HandOver), "many": duration(r.Many),
		"requests": number(r.Requests), "waiting": number(r.Waiting), "wake-up": number(r.WakeUp),
		"keeping": number(r.Keeping),
	}
}

// speed returns a number of the table of speeds, as a link to its row.
func (w writer) speed(kind, figure string) (string, error) {
	r, err := w.measured(kind)
	text := figures(r)[figure]
	if err == nil && text == "" {
		err = fmt.Errorf("%s: no %s", kind, figure)
	}
	return link(text, anchor("speed", kind)), err
}

// times returns how many times faster one kind is than another at the throughput of one program.
func (w writer) times(fast, slow string) (string, error) {
	a, err := w.measured(fast)
	if err != nil {
		return "", err
	}
	b, err := w.measured(slow)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.1f", a.Alone/max(b.Alone, 1)), nil
}

// Table is rows of text.
type Table struct {
	Head []string
	Rows [][]string
}

// Markdown returns the table.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.Head)
	line(slices.Repeat([]string{"---"}, len(t.Head)))
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// summary is all rows, in short: a kind is a line, a fault a column.
func (w writer) summary() Table {
	t := Table{Head: []string{w.text["lock"]}}
	for _, f := range safety.Faults {
		t.Head = append(t.Head, w.faults[f])
	}
	for _, k := range w.kinds() {
		line := []string{link(k.Name, anchor(k.Name))}
		for _, f := range safety.Faults {
			line = append(line, w.short(k, f))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// short is a cell of the summary: lost updates without a token, with it, and in the service.
func (w writer) short(k peer.Kind, f safety.Fault) string {
	row, err := w.row(k.Name, f)
	if err != nil {
		return ""
	}
	var numbers []string
	for _, column := range []string{"plain", "token", "guard"} {
		if n, there, _ := cell(row, column); there {
			numbers = append(numbers, fmt.Sprint(n))
		}
	}
	text := strings.Join(numbers, "/")
	if row.Stuck {
		text += " " + w.text["stuck"]
	}
	return link(text, anchor(k.Name, string(f)))
}

// section is the rows of one kind.
type section struct {
	Anchor, Name, About string
	Table               Table
}

func (w writer) sections() (all []section) {
	for _, k := range w.kinds() {
		t := Table{Head: w.head}
		for _, f := range safety.Faults {
			row, err := w.row(k.Name, f)
			if err != nil {
				continue
			}
			t.Rows = append(t.Rows, w.full(k, row))
		}
		all = append(all, section{anchor(k.Name), k.Name, w.about[k.Name], t})
	}
	return all
}

func (w writer) full(k peer.Kind, row safety.Row) []string {
	line := []string{fmt.Sprintf(`<a id="%s"></a>%s`, anchor(k.Name, string(row.Fault)), w.faults[row.Fault])}
	e := safety.Theory(k, row.Fault)
	for column, verdict := range map[string]safety.Verdict{"plain": e.Plain} {
		n, _, _ := cell(row, column)
		line = append(line, fmt.Sprintf("%d (%s)", n, w.verdicts[verdict]))
	}
	for _, column := range []string{"token", "guard"} {
		text := "-"
		if n, there, _ := cell(row, column); there {
			text = fmt.Sprint(n)
		}
		line = append(line, text)
	}
	yes := func(is bool) string {
		if is {
			return w.text["yes"]
		}
		return ""
	}
	return append(line, yes(row.Double), w.end(row), yes(row.Refused))
}

// end says when the lock became free.
func (w writer) end(row safety.Row) string {
	switch {
	case row.Stuck:
		return w.text["never"]
	case row.Free > 0:
		return duration(row.Free)
	case row.Kept:
		return w.text["kept"]
	}
	return w.text["given up"]
}

// absent lists what was not run, with the reasons.
func (w writer) absent() Table {
	t := Table{Head: []string{w.text["lock"], w.head[0], w.text["reason"]}}
	for _, row := range w.Safety {
		if row.Reason != "" {
			reason := row.Reason[strings.LastIndex(row.Reason, ": ")+1:]
			t.Rows = append(t.Rows, []string{row.Kind, w.faults[row.Fault], strings.TrimSpace(reason)})
		}
	}
	return t
}

// unmeasured lists the numbers that could not be measured, with the beginnings of the reasons.
func (w writer) unmeasured() Table {
	const enough = 160
	t := Table{Head: []string{w.text["lock"], w.text["reason"]}}
	for _, r := range w.Speed {
		for _, reason := range r.Reasons {
			line, _, _ := strings.Cut(reason, "\n")
			line = strings.NewReplacer("|", "/", "`", "").Replace(line)
			t.Rows = append(t.Rows, []string{r.Kind, strings.ToValidUTF8(line[:min(len(line), enough)], "")})
		}
	}
	return t
}

func (w writer) speeds() Table {
	t := Table{Head: w.speedHead}
	for _, r := range w.Speed {
		f := figures(r)
		line := []string{fmt.Sprintf(`<a id="%s"></a>%s`, anchor("speed", r.Kind), r.Kind)}
		for _, name := range []string{"alone", "p50", "p99", "contended", "fairness", "hand-over", "many", "requests",
			"waiting", "wake-up", "keeping"} {
			line = append(line, f[name])
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// number returns text with two or three digits, and "" for what was not measured.
func number(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 1:
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.2f", n)
}

// duration is number for a time.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0f µs", d.Seconds()*1e6)
}
