package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// The formats of the output.
const (
	formatTable = "table"
	formatJSON  = "json"
)

// outputFlag is the flag of all commands that print what they have found. A command with the flag
// gets its output from outputOf.
func outputFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "output", Aliases: []string{"o"},
		Usage: "the `FORMAT` of the output: table, or json, with one object a line",
		Value: formatTable,
	}
}

// output is where a command prints what it has found.
type output struct {
	io.Writer
	json bool
	errs io.Writer // for what the user should know besides
}

// say tells the user something.
func (o output) say(message string) { _, _ = fmt.Fprintln(o.errs, "docent:", message) }

// outputOf returns the output of a command with outputFlag.
func outputOf(c *cli.Command) (output, error) {
	o := output{Writer: c.Root().Writer, errs: c.Root().ErrWriter}
	switch format := c.String("output"); format {
	case formatTable:
	case formatJSON:
		o.json = true
	default:
		return o, usagef("--output %q: want table or json", format)
	}
	return o, nil
}

// object prints a line of JSON.
//
// Names of fields have underscores. Ids of sessions and tokens are inspect.IDs: hexadecimal text. A
// time is a time.Time in UTC, and so RFC 3339. A duration is of type seconds, and its name ends in
// _seconds.
func (o output) object(value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintf(o, "%s\n", text)
	}
	return err
}

// seconds returns a duration for JSON.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// mostRows is how many rows of a table are kept in memory to align them.
const mostRows = 256

// table prints rows of cells in columns, or an object of JSON for each. Package text/tabwriter would
// align either all rows, which need memory then, or each part on its own. A column of this table
// is never less wide than it was in an earlier part.
type table struct {
	output
	indent string
	rows   [][]string
	widths []int
}

// table returns a table with these headings. Call flush after the last row.
func (o output) table(headings ...string) *table {
	return &table{output: o, rows: [][]string{headings}, widths: make([]int, len(headings))}
}

// row adds a row with one cell for each column, or prints the object.
func (t *table) row(object any, cells ...string) error {
	if t.json {
		return t.object(object)
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < mostRows {
		return nil
	}
	return t.flush()
}

// flush prints the rows that are still in memory.
func (t *table) flush() error {
	if t.json {
		return nil
	}
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = printable(cell)
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var lines strings.Builder
	for _, row := range t.rows {
		line := t.indent
		for i, cell := range row {
			line += fmt.Sprintf("%-*s   ", t.widths[i], cell)
		}
		lines.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	t.rows = nil
	_, err := io.WriteString(t, lines.String())
	return err
}

// mostRunes is the width of a cell. Any client may have written what is in it.
const mostRunes = 200

// printable returns text for a terminal: ? stands for each character that is not printed, "-" for
// nothing, and "..." for what exceeds mostRunes.
func printable(text string) string {
	if text == "" {
		return "-"
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > mostRunes {
		return string(runes[:mostRunes]) + "..."
	}
	return text
}

// ageText returns a duration in its two largest units: 3d4h, 5h20m, 7m3s, 12s. It is "-" for less than
// nothing, which is what is not known.
func ageText(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 0 {
		return "-"
	}
	d = d.Truncate(time.Second)
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// timeText returns a time in UTC, to the second, or "-" for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
