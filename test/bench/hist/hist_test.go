package hist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantilesAreThoseOfTheDurations(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 500, 0.99: 990, 1: 1000} {
		require.InEpsilon(t, want*time.Microsecond, h.Quantile(q), 0.003, "%v", q)
	}
}

func TestOneSlowOperationInTwoHundredIsNotTheP99(t *testing.T) {
	var h Histogram
	for range 199 {
		h.Record(time.Millisecond)
	}
	h.Record(time.Second)
	require.InEpsilon(t, time.Millisecond, h.Quantile(0.99), 0.003)
	h.Record(time.Second)
	h.Record(time.Second)
	require.InEpsilon(t, time.Second, h.Quantile(0.99), 0.003)
}

func TestNothingHasNoQuantiles(t *testing.T) {
	var h Histogram
	require.Zero(t, h.Quantile(0.5))
	require.Zero(t, h.Count())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var h, sum Histogram
	for _, d := range []time.Duration{0, 1, time.Microsecond, time.Microsecond, time.Hour} {
		h.Record(d)
	}
	read, err := Parse(h.String())
	require.NoError(t, err)
	require.Equal(t, &h, read)
	sum.Merge(read)
	sum.Merge(&h)
	require.EqualValues(t, 10, sum.Count())
	for _, bad := range []string{"x", "1", "1:x", "-1:1", "99999999:1"} {
		_, err := Parse(bad)
		require.Error(t, err, bad)
	}
}

func TestMedianIsInTheMiddle(t *testing.T) {
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, Median([]float64{4, 1, 3, 2}))
	require.Zero(t, Median(nil))
}
