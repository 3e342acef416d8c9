import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Many threads of one client wait for one lock, and then each acquires and releases it: see queue.go. */
final class LockQueue extends Job {
    private static final int ROUND_TRIPS = 20;

    private final List<Lock> locks = new ArrayList<>();
    private final ExecutorService threads;
    private volatile long left;
    private int turns; // guarded by the lock under test

    LockQueue(Map<String, String> words) throws Exception {
        super(words, 1);
        for (int i = 0; i <= number("threads"); i++) {
            locks.add(Lock.make(clients.get(0), kind, path));
        }
        threads = Executors.newFixedThreadPool(locks.size());
    }

    @Override
    String run(long nanos) throws Exception {
        Histogram latencies = new Histogram();
        long ops = 0;
        long took = 0;
        for (long began = System.nanoTime(); ops == 0 || System.nanoTime() - began < nanos; ops += locks.size() - 1) {
            took += once(latencies);
        }
        return result(ops, took, 0, latencies);
    }

    private long once(Histogram latencies) throws Exception {
        int counted = Math.max(locks.size() / 20, 10);
        turns = 0;
        locks.get(0).acquire();
        List<Future<?>> waiting = new ArrayList<>();
        for (Lock lock : locks.subList(1, locks.size())) {
            waiting.add(threads.submit(() -> {
                lock.acquire();
                long now = System.nanoTime();
                if (++turns <= counted) {
                    latencies.record(now - left);
                }
                left = System.nanoTime();
                lock.release();
                return null;
            }));
        }
        fill();
        long began = System.nanoTime();
        left = began;
        locks.get(0).release();
        for (Future<?> thread : waiting) {
            thread.get();
        }
        return System.nanoTime() - began;
    }

    private void fill() throws Exception {
        for (int behind = 0; behind < ROUND_TRIPS; ) {
            if (clients.get(0).checkExists().forPath(path).getNumChildren() < locks.size()) {
                Thread.sleep(1);
            } else {
                behind++;
            }
        }
    }

    @Override
    public void close() {
        threads.shutdown();
        super.close();
    }
}
