package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docent-zk/docent/zktest/ensemble"
)

// describe prints the facts about the machine and the versions.
func describe(w io.Writer) {
	fmt.Fprintf(w, "date:       %s\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(w, "machine:    %s, %d processors, %s/%s\n", processor(), runtime.NumCPU(), runtime.GOOS,
		runtime.GOARCH)
	fmt.Fprintf(w, "go:         %s, GOMAXPROCS %d\n", runtime.Version(), runtime.GOMAXPROCS(0))
	d, err := ensemble.Find()
	if err != nil {
		fmt.Fprintf(w, "zookeeper:  %v\n", err)
		return
	}
	fmt.Fprintf(w, "zookeeper:  %s on Java %s\n\n", known(d.Version), javaVersion(d.Java))
}

// processor returns the name of the processor, where the system has it in a file.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return known("")
}

// javaVersion returns the text between quotes in the program's output.
func javaVersion(java string) string {
	words, _ := exec.Command(java, "-version").CombinedOutput()
	parts := bytes.Split(words, []byte(`"`))
	if len(parts) < 3 {
		return known("")
	}
	return string(parts[1])
}

func known(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// report prints operations per second. The ratios compare the last server with the first.
func report(w io.Writer, results []result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "create+delete, operations/s\tmedian\tmin\tmax\tratio of medians\tof each round\t")
	for _, r := range results {
		for i, s := range r.servers {
			sorted := slices.Sorted(slices.Values(r.rates[i]))
			fmt.Fprintf(table, "%s: %s\t%.0f\t%.0f\t%.0f\t", r.name, s.name, median(sorted), sorted[0],
				sorted[len(sorted)-1])
			if i > 0 {
				fmt.Fprint(table, r.ratio(i))
			} else {
				fmt.Fprint(table, "\t\t")
			}
			fmt.Fprintln(table)
		}
	}
	_ = table.Flush()
}

// ratio compares server i with the first one.
func (r result) ratio(i int) string {
	var each []float64
	for round, rate := range r.rates[i] {
		each = append(each, rate/r.rates[0][round])
	}
	slices.Sort(each)
	first, own := slices.Sorted(slices.Values(r.rates[0])), slices.Sorted(slices.Values(r.rates[i]))
	return fmt.Sprintf("%.2f\t%.2f to %.2f\t", median(own)/median(first), each[0], each[len(each)-1])
}

// median returns the median of sorted numbers.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
