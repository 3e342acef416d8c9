import java.util.Arrays;

/** Counts durations in the buckets of package hist, for one thread. */
final class Histogram {
    private static final double PER_E = 500;
    private long[] counts = new long[1024];

    void record(long nanos) {
        int bucket = (int) (Math.log(Math.max(nanos, 1)) * PER_E);
        if (bucket >= counts.length) {
            counts = Arrays.copyOf(counts, Math.max(bucket + 1, 2 * counts.length));
        }
        counts[bucket]++;
    }

    void merge(Histogram other) {
        counts = Arrays.copyOf(counts, Math.max(counts.length, other.counts.length));
        for (int i = 0; i < other.counts.length; i++) {
            counts[i] += other.counts[i];
        }
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < counts.length; i++) {
            if (counts[i] > 0) {
                text.append(text.length() > 0 ? "," : "").append(i).append(':').append(counts[i]);
            }
        }
        return text.toString();
    }
}
