// Package hist counts durations in buckets of equal relative width, so that peers in other
// languages can report theirs in one line.
package hist

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// perE is the number of buckets for each factor of e. The values in one differ by a fifth of a
// percent. The peers in Java and Python use the same.
const perE = 500

// Histogram counts durations. The zero value is empty. Its methods must not be called concurrently.
type Histogram struct {
	counts []int64 // by bucket
	n      int64
}

// Record counts a duration. One shorter than a nanosecond counts as a nanosecond.
func (h *Histogram) Record(d time.Duration) {
	h.add(int(math.Log(float64(max(d, 1)))*perE), 1)
}

func (h *Histogram) add(bucket int, n int64) {
	if more := bucket + 1 - len(h.counts); more > 0 {
		h.counts = append(h.counts, make([]int64, more)...)
	}
	h.counts[bucket] += n
	h.n += n
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for bucket, n := range other.counts {
		if n > 0 {
			h.add(bucket, n)
		}
	}
}

// Count returns the number of durations.
func (h *Histogram) Count() int64 { return h.n }

// Quantile returns the duration that a part q of all, between 0 and 1, does not exceed, and 0 if
// there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(q*float64(h.n))))
	var seen int64
	for bucket, n := range h.counts {
		if seen += n; seen >= rank {
			return time.Duration(math.Exp((float64(bucket) + 0.5) / perE))
		}
	}
	return 0
}

// String returns text such as "3107:2,3110:1": buckets and the count of each. Parse reads it.
func (h *Histogram) String() string {
	var parts []string
	for bucket, n := range h.counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d", bucket, n))
		}
	}
	return strings.Join(parts, ",")
}

// Parse reads the output of String.
func Parse(s string) (*Histogram, error) {
	h := &Histogram{}
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		left, right, _ := strings.Cut(part, ":")
		bucket, err := strconv.Atoi(left)
		if err == nil && (bucket < 0 || bucket > perE*64) {
			err = fmt.Errorf("no bucket %d", bucket)
		}
		if err != nil {
			return nil, fmt.Errorf("histogram: %q: %w", part, err)
		}
		n, err := strconv.ParseInt(right, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("histogram: %q: %w", part, err)
		}
		h.add(bucket, n)
	}
	return h, nil
}

// Median returns the median of any numbers, and 0 if there are none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
