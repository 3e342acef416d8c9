// Prose checks how the module is written. It prints what it counts, where the worst of it is, and exits
// with status 1 if a limit is exceeded:
//
//   - Pronouns for persons (the table in words.go) in 100 words of comments and Markdown. Things are
//     things in this module: a comment names the holder, the waiter or the client. Each class of files
//     has a limit: library, docs, tests, examples.
//   - Lines of more than 120 columns in Go and Markdown files. None is allowed.
//   - Words that the module has given up, in files of all kinds but the changelog. None is allowed.
//
// It reads the files that git tracks. A folder named testdata has no prose and no long lines, but may not
// have words that are given up. The decision records in docs/adr are not rewritten: nothing is counted in
// them.
//
// What it does not see: synonyms such as "the one that" and "those that"; pronouns in string literals,
// and so in errors, logs and usage texts; given-up words inside of longer identifiers; prose in files that
// are neither Go nor Markdown. It cannot tell persons from things: a rightful pronoun counts, and so do the
// two words in "no one connection". Comments count with all the code in them; in Markdown, code that is
// indented instead of fenced counts as text.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 1 if a limit is exceeded, 2 if the prose could not be checked.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("prose", flag.ContinueOnError)
	flags.SetOutput(stderr)
	report := flags.Bool("report", false, "exit with status 0 although a limit is exceeded")
	worst := flags.Int("worst", 10, "print so many of the worst files and places")
	root := flags.String("root", ".", "check this folder, the root of the module")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	n, err := check(*root)
	if err != nil {
		fmt.Fprintln(stderr, "prose:", err)
		return 2
	}
	n.print(stdout, *worst)
	if n.bad() && !*report {
		fmt.Fprintln(stderr, "prose: a limit is exceeded")
		return 1
	}
	return 0
}

// print writes all numbers, and of what exceeds a limit the worst files and places.
func (n *counts) print(w io.Writer, worst int) {
	n.printTable(w)
	var exceeding []place
	for c := range classes {
		if n.exceeds(c) {
			exceeding = append(exceeding, slices.DeleteFunc(slices.Clone(n.pronouns),
				func(p place) bool { return p.class != c })...)
		}
	}
	printWorst(w, "pronouns for things", exceeding, worst)
	printWorst(w, fmt.Sprintf("lines over %d columns", maxColumns), n.wide, worst)
	printWorst(w, "words given up", n.givenUp, worst)
}

func (n *counts) printTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "class\twords\tpronouns\tin 100 words\tlimit\t\tlines over %d columns\n", maxColumns)
	for c := range classes {
		found := inClass(n.pronouns, c)
		verdict := ""
		if n.exceeds(c) {
			verdict = "exceeded"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%.2f\t%s\t%d\n", c, n.words[c], found,
			100*float64(found)/float64(max(n.words[c], 1)), float64(limits[c])/100, verdict, inClass(n.wide, c))
	}
	t.Flush()
	hits := 0
	for _, p := range n.givenUp {
		hits += p.hits
	}
	fmt.Fprintf(w, "words given up: %d in %d lines\n", hits, len(n.givenUp))
}

// printWorst writes the files with the most hits, and the lines with the most hits and then columns.
func printWorst(w io.Writer, what string, places []place, worst int) {
	if len(places) == 0 || worst <= 0 {
		return
	}
	byFile := map[string]int{}
	for _, p := range places {
		byFile[p.file] += p.hits
	}
	names := make([]string, 0, len(byFile))
	for name := range byFile {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(byFile[b], byFile[a]), strings.Compare(a, b))
	})
	fmt.Fprintf(w, "\n%s, the worst of %d files:\n", what, len(names))
	for _, name := range names[:min(worst, len(names))] {
		fmt.Fprintf(w, "%5d  %s\n", byFile[name], name)
	}
	sorted := slices.Clone(places)
	slices.SortFunc(sorted, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.hits, a.hits), cmp.Compare(b.columns, a.columns),
			strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	fmt.Fprintf(w, "%s, the worst of %d lines:\n", what, len(sorted))
	for _, p := range sorted[:min(worst, len(sorted))] {
		fmt.Fprintf(w, "%s:%d: %s\n", p.file, p.line, cut(p.text))
	}
}

// cut shortens text to what fits a line of a terminal.
func cut(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
