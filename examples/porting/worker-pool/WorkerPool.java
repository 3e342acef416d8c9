import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Runs jobs in several workers. All processes together never run more jobs at the same time than a limit. */
public final class WorkerPool {
    private final String name = "java-" + ProcessHandle.current().pid();
    private final Path running;
    private final Path done;
    private final int limit;
    private final InterProcessSemaphoreV2 semaphore;
    private final AtomicInteger peak = new AtomicInteger();

    private WorkerPool(CuratorFramework client, String path, Path dir, int limit) throws IOException {
        this.semaphore = new InterProcessSemaphoreV2(client, path, limit);
        this.running = Files.createDirectories(dir.resolve("running"));
        this.done = Files.createDirectories(dir.resolve("done"));
        this.limit = limit;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> flags = new HashMap<>(Map.of(
                "-connect", "localhost:2181", "-path", "/docent-examples/porting/worker-pool",
                "-limit", "3", "-workers", "3", "-rounds", "10"));
        for (int i = 0; i + 1 < args.length; i += 2) {
            flags.put(args[i], args[i + 1]);
        }
        Path dir = Path.of(Objects.requireNonNull(flags.get("-dir"), "-dir is missing"));
        int limit = Integer.parseInt(flags.get("-limit"));
        int workers = Integer.parseInt(flags.get("-workers"));
        int rounds = Integer.parseInt(flags.get("-rounds"));

        try (CuratorFramework client = CuratorFrameworkFactory.newClient(
                flags.get("-connect"), new ExponentialBackoffRetry(100, 8))) {
            client.start();
            WorkerPool pool = new WorkerPool(client, flags.get("-path"), dir, limit);
            pool.runAll(workers, rounds);
            System.out.printf("%s has done %d jobs, of at most %d at a time%n",
                    pool.name, workers * rounds, pool.peak.get());
        }
    }

    private void runAll(int workers, int rounds) throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < workers; i++) {
            int worker = i;
            tasks.add(() -> work(worker, rounds));
        }
        ExecutorService executor = Executors.newFixedThreadPool(workers);
        try {
            for (Future<Void> task : executor.invokeAll(tasks)) {
                task.get();
            }
        } finally {
            executor.shutdownNow();
        }
    }

    private Void work(int worker, int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            Lease lease = semaphore.acquire();
            try {
                job(name + "-" + worker + "-" + i);
            } finally {
                lease.close();
            }
        }
        return null;
    }

    /** Runs a job. The job has a file in one folder while it runs, and in another folder afterwards. */
    private void job(String id) throws Exception {
        Path file = Files.createFile(running.resolve(id));
        try {
            checkLimit();
            Thread.sleep(20); // the work
        } catch (Exception e) {
            Files.delete(file);
            throw e;
        }
        Files.move(file, done.resolve(id));
    }

    /**
     * Fails if too many jobs run. It lists the jobs twice. All jobs that are in both lists ran at the
     * time between them. One list alone may have jobs that did not run at the same time.
     */
    private void checkLimit() throws IOException {
        List<String> jobs = jobs();
        jobs.retainAll(jobs());
        if (jobs.size() > limit) {
            throw new IllegalStateException(String.format("%d jobs at a time, not %d: %s", jobs.size(), limit, jobs));
        }
        peak.accumulateAndGet(jobs.size(), Math::max);
    }

    private List<String> jobs() throws IOException {
        try (Stream<Path> files = Files.list(running)) {
            return files.map(file -> file.getFileName().toString()).collect(Collectors.toCollection(ArrayList::new));
        }
    }
}
