package differential

import (
	"fmt"
	"strings"
	"testing"
)

const (
	diffContext = 4  // equal lines shown around a difference
	diffLines   = 80 // one early difference may cause many later ones
)

// diff returns the differences of two transcripts, "" if there are none.
func diff(left, right []string) string {
	var lines []string
	different := false
	for _, c := range changes(left, right) {
		lines = append(lines, c)
		different = different || c[0] != ' '
	}
	if !different {
		return ""
	}
	return strings.Join(shorten(lines), "\n")
}

// changes returns both transcripts as one. Each line starts with ' ' if it is in both, '-' if it is
// only in left, '+' if it is only in right.
func changes(left, right []string) []string {
	common := commonLengths(left, right)
	var lines []string
	i, j := 0, 0
	for i < len(left) || j < len(right) {
		switch {
		case i < len(left) && j < len(right) && left[i] == right[j]:
			lines = append(lines, "  "+left[i])
			i, j = i+1, j+1
		case j == len(right) || i < len(left) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+left[i])
			i++
		default:
			lines = append(lines, "+ "+right[j])
			j++
		}
	}
	return lines
}

// commonLengths[i][j] is the length of the longest common subsequence of left[i:] and right[j:].
func commonLengths(left, right []string) [][]int {
	table := make([][]int, len(left)+1)
	for i := range table {
		table[i] = make([]int, len(right)+1)
	}
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if left[i] == right[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// shorten removes lines that are far from any difference.
func shorten(lines []string) []string {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	var shown []string
	for i, line := range lines {
		switch {
		case near[i]:
			shown = append(shown, line)
		case i == 0 || near[i-1]:
			shown = append(shown, "  ...")
		}
	}
	if len(shown) > diffLines {
		more := fmt.Sprintf("  ... and %d lines more", len(shown)-diffLines)
		shown = append(shown[:diffLines], more)
	}
	return shown
}

func TestDiffShowsOnlyWhatDiffers(t *testing.T) {
	for _, c := range []struct{ left, right, want string }{
		{"a b c", "a b c", ""},
		{"", "", ""},
		{"a b c", "a x c", "  a\n- b\n+ x\n  c"},
		{"a b", "a b c", "  a\n  b\n+ c"},
		{"1 2 3 4 5 6 7", "1 2 3 4 5 6", "  ...\n  3\n  4\n  5\n  6\n- 7"},
	} {
		got := diff(strings.Fields(c.left), strings.Fields(c.right))
		if got != c.want {
			t.Errorf("diff of %q and %q:\n%s\nwant:\n%s", c.left, c.right, got, c.want)
		}
	}
}
