import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Places orders, and after each order reads all orders from a cache that all processes share. A
 * read-write lock protects the cache. A process that misses orders in the cache rebuilds it.
 */
public final class CacheRebuild {
    private final String name = "java-" + ProcessHandle.current().pid();
    private final Path dir;
    private final InterProcessReadWriteLock lock;
    private int rebuilt;

    private CacheRebuild(CuratorFramework client, String path, Path dir) {
        this.lock = new InterProcessReadWriteLock(client, path);
        this.dir = dir;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> flags = new HashMap<>(Map.of(
                "-connect", "localhost:2181", "-path", "/docent-examples/porting/cache-rebuild", "-rounds", "10"));
        for (int i = 0; i + 1 < args.length; i += 2) {
            flags.put(args[i], args[i + 1]);
        }
        Path dir = Path.of(Objects.requireNonNull(flags.get("-dir"), "-dir is missing"));
        Files.createDirectories(dir.resolve("orders"));
        int rounds = Integer.parseInt(flags.get("-rounds"));

        try (CuratorFramework client = CuratorFrameworkFactory.newClient(
                flags.get("-connect"), new ExponentialBackoffRetry(100, 8))) {
            client.start();
            CacheRebuild cache = new CacheRebuild(client, flags.get("-path"), dir);
            for (int i = 0; i < rounds; i++) {
                cache.order(i);
            }
            System.out.printf("%s has placed %d orders and rebuilt the cache %d times%n",
                    cache.name, rounds, cache.rebuilt);
        }
    }

    private void order(int number) throws Exception {
        String order = name + "-" + number;
        Files.createFile(dir.resolve("orders").resolve(order));
        List<String> all = get();
        if (!all.contains(order)) {
            throw new IllegalStateException(order + " is not among the " + all.size() + " orders in the cache");
        }
    }

    /** Returns at least all orders that were placed before the call. */
    private List<String> get() throws Exception {
        lock.readLock().acquire();
        try {
            List<String> cached = read();
            if (cached.equals(orders())) {
                return cached;
            }
        } finally {
            lock.readLock().release();
        }
        return rebuild();
    }

    /**
     * Reads before the write lock is released. The port acquires the read lock and releases the write
     * lock first. Up to Curator 5.4, that would let a waiting writer in (CURATOR-621).
     */
    private List<String> rebuild() throws Exception {
        lock.writeLock().acquire();
        try {
            List<String> written = write();
            List<String> cached = read();
            if (!cached.equals(written)) {
                throw new IllegalStateException(String.format(
                        "another process has written the cache: %d orders, and it had %d",
                        cached.size(), written.size()));
            }
            return cached;
        } finally {
            lock.writeLock().release();
        }
    }

    /** Brings the cache up to date, unless another process has done so since get read it. */
    private List<String> write() throws Exception {
        List<String> orders = orders();
        if (!read().equals(orders)) {
            Files.write(dir.resolve("list"), orders);
            Thread.sleep(2);
            Files.writeString(dir.resolve("size"), Integer.toString(orders.size()));
            rebuilt++;
        }
        return orders;
    }

    /**
     * Returns the cache. The cache is in two files, which are written one after the other. So a read
     * fails during a write, and after a write that was stopped in between.
     */
    private List<String> read() throws Exception {
        Path list = dir.resolve("list");
        Path sizeFile = dir.resolve("size");
        if (Files.notExists(list)) {
            return List.of();
        }
        List<String> cached = Files.readAllLines(list);
        Thread.sleep(1);
        String size = Files.exists(sizeFile) ? Files.readString(sizeFile) : "";
        if (!size.equals(Integer.toString(cached.size()))) {
            throw new IllegalStateException(String.format(
                    "the cache is being written: %d orders, and a size of '%s'", cached.size(), size));
        }
        return cached;
    }

    /** Returns all orders, from which the cache is made. */
    private List<String> orders() throws IOException {
        try (Stream<Path> files = Files.list(dir.resolve("orders"))) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }
}
