import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Threads acquire and release repeatedly: see loop.go. */
final class Loop extends Job {
    private static final int MIX = 10;

    private final List<Turns> locks = new ArrayList<>();
    private final ExecutorService threads;
    private final boolean exclusive;
    private final long hold;
    private final AtomicLong left = new AtomicLong(Long.MIN_VALUE);
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicLong overlaps = new AtomicLong();

    Loop(Map<String, String> words) throws Exception {
        super(words, number(words, "clients"));
        int perClient = number("threads");
        exclusive = is("shared") && !"mixed".equals(kind) && !"counter".equals(kind);
        hold = number("hold");
        for (int i = 0; i < clients.size() * perClient; i++) {
            locks.add(take(i, i / perClient, is("shared") ? path : path + "/" + i));
        }
        threads = Executors.newFixedThreadPool(locks.size());
    }

    /** The lock of each turn of a thread, in all runs. */
    private interface Turns {
        Lock next();
    }

    private Turns take(int thread, int client, String path) {
        AtomicInteger turns = new AtomicInteger();
        switch (word("fresh")) {
            case "value":
                return () -> Lock.make(clients.get(client), kind, path);
            case "path":
                return () -> Lock.make(clients.get(client), kind, path + "/" + turns.incrementAndGet());
            default:
                List<Lock> all = several(thread, client, path);
                return () -> all.get(turns.incrementAndGet() % all.size());
        }
    }

    private List<Lock> several(int thread, int client, String path) {
        if (!"mixed".equals(kind)) {
            return Collections.singletonList(Lock.make(clients.get(client), kind, path));
        }
        List<Lock> turns = new ArrayList<>();
        for (int turn = 0; turn < MIX; turn++) {
            turns.add(Lock.make(clients.get(client), turn == thread % MIX ? "write" : "read", path));
        }
        return turns;
    }

    @Override
    String run(long nanos) throws Exception {
        left.set(Long.MIN_VALUE);
        overlaps.set(0);
        CountDownLatch ready = new CountDownLatch(locks.size());
        CountDownLatch gate = new CountDownLatch(1);
        Histogram sum = new Histogram();
        List<Future<Long>> running = new ArrayList<>();
        for (Turns turns : locks) {
            Callable<Long> thread = () -> {
                ready.countDown();
                gate.await();
                Histogram latencies = new Histogram();
                long ops = 0;
                for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ops++) {
                    turn(turns, latencies);
                }
                synchronized (sum) {
                    sum.merge(latencies);
                }
                return ops;
            };
            running.add(threads.submit(thread));
        }
        ready.await();
        long began = System.nanoTime();
        gate.countDown();
        long ops = 0;
        for (Future<Long> thread : running) {
            ops += thread.get();
        }
        return result(ops, System.nanoTime() - began, overlaps.get(), sum);
    }

    private void turn(Turns turns, Histogram latencies) throws Exception {
        long began = System.nanoTime();
        Lock lock = turns.next();
        lock.acquire();
        if (exclusive) {
            long last = left.get();
            if (last > began) {
                latencies.record(System.nanoTime() - last);
            }
            if (inside.incrementAndGet() != 1) {
                overlaps.incrementAndGet();
            }
        }
        if (hold > 0) {
            Thread.sleep(hold / 1000, (int) (hold % 1000 * 1000));
        }
        if (exclusive) {
            inside.decrementAndGet();
            left.set(System.nanoTime());
        }
        lock.release();
        if (!exclusive) {
            latencies.record(System.nanoTime() - began);
        }
    }

    @Override
    public void close() {
        threads.shutdown();
        super.close();
    }
}
