package program

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Style is a colour or a weight of text on a terminal: the number of its escape sequence.
type Style string

// The styles.
const (
	Bold    Style = "1"
	Dim     Style = "2"
	Red     Style = "1;31"
	Green   Style = "32"
	Yellow  Style = "33"
	Blue    Style = "34"
	Magenta Style = "35"
	Cyan    Style = "36"
)

// Rule gives what a pattern matches a style. The pattern has no capturing groups. Of several styles
// the number at the end of the match selects one, so that "worker 1" and "worker 2" differ.
type Rule struct {
	Pattern string
	Styles  []Style
}

// Coloured returns a writer that writes to out. If out is a terminal, what matches a rule has the
// style of the first such rule. Each Write must have whole lines. Coloured panics if a pattern is
// not valid.
//
// Without a terminal, and with the environment variable NO_COLOR, Coloured returns out.
func Coloured(out io.Writer, rules ...Rule) io.Writer {
	if !IsTerminal(out) || os.Getenv("NO_COLOR") != "" {
		return out
	}
	return newPainter(out, rules)
}

// IsTerminal reports whether out is a terminal that shows styles.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	kind := os.Getenv("TERM") // not set in the consoles of Windows that know no escape sequences
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && kind != "" && kind != "dumb"
}

// painter adds styles to what it writes.
type painter struct {
	out     io.Writer
	rules   []Rule
	pattern *regexp.Regexp // a group for each rule
}

func newPainter(out io.Writer, rules []Rule) *painter {
	groups := make([]string, len(rules))
	for i, r := range rules {
		groups[i] = "(" + r.Pattern + ")"
	}
	return &painter{out, rules, regexp.MustCompile("(?m)" + strings.Join(groups, "|"))}
}

func (p *painter) Write(text []byte) (int, error) {
	var painted []byte
	rest := 0 // where the text begins that is not painted yet
	for _, match := range p.pattern.FindAllSubmatchIndex(text, -1) {
		painted = append(painted, text[rest:match[0]]...)
		painted = append(painted, p.paint(text, match)...)
		rest = match[1]
	}
	painted = append(painted, text[rest:]...)
	if _, err := p.out.Write(painted); err != nil {
		return 0, err
	}
	return len(text), nil
}

// paint returns a match in its style. The indexes of group i of the pattern are match[2i] and
// match[2i+1].
func (p *painter) paint(text []byte, match []int) string {
	found := string(text[match[0]:match[1]])
	for i, r := range p.rules {
		if match[2*i+2] >= 0 {
			return "\x1b[" + string(r.style(found)) + "m" + found + "\x1b[0m"
		}
	}
	return found
}

// style returns the style of a match.
func (r Rule) style(match string) Style {
	digits := match[len(strings.TrimRight(match, "0123456789")):]
	n, _ := strconv.Atoi(digits) // 0 without digits
	return r.Styles[n%len(r.Styles)]
}

// letterTime is for how long a reader looks at a letter.
const letterTime = 13 * time.Millisecond

// Slowly returns a writer that writes to out and then waits for as long as it takes to read the
// text. It does not wait any more once ctx has ended.
func Slowly(ctx context.Context, out io.Writer) io.Writer { return slowWriter{ctx, out} }

type slowWriter struct {
	ctx context.Context
	out io.Writer
}

func (w slowWriter) Write(text []byte) (int, error) {
	n, err := w.out.Write(text)
	letters := utf8.RuneCount(text) - bytes.Count(text, []byte(" ")) // columns are padded
	timer := time.NewTimer(time.Duration(letters) * letterTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
	return n, err
}
