import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Uses a resource again and again, under a mutex that all processes share. The resource permits only
 * one user at a time.
 */
public final class LimitedResource {
    private static final long TIMEOUT_SECONDS = 60;

    private final String name = "java-" + ProcessHandle.current().pid();
    private final Path dir;
    private final InterProcessMutex mutex;

    private LimitedResource(CuratorFramework client, String path, Path dir) {
        this.mutex = new InterProcessMutex(client, path);
        this.dir = dir;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> flags = new HashMap<>(Map.of(
                "-connect", "localhost:2181", "-path", "/docent-examples/porting/limited-resource", "-rounds", "10"));
        for (int i = 0; i + 1 < args.length; i += 2) {
            flags.put(args[i], args[i + 1]);
        }
        Path dir = Path.of(Objects.requireNonNull(flags.get("-dir"), "-dir is missing"));
        Files.createDirectories(dir);
        int rounds = Integer.parseInt(flags.get("-rounds"));

        try (CuratorFramework client = CuratorFrameworkFactory.newClient(
                flags.get("-connect"), new ExponentialBackoffRetry(100, 8))) {
            // Without a connection, another client may get the lock. The mutex does not report that,
            // so the program stops early.
            Thread user = Thread.currentThread();
            client.getConnectionStateListenable().addListener((c, state) -> {
                if (!state.isConnected()) {
                    user.interrupt();
                }
            });
            client.start();
            LimitedResource resource = new LimitedResource(client, flags.get("-path"), dir);
            for (int i = 0; i < rounds; i++) {
                resource.useLocked();
            }
            System.out.printf("%s has used the resource %d times%n", resource.name, rounds);
        }
    }

    private void useLocked() throws Exception {
        if (!mutex.acquire(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the lock was not free for " + TIMEOUT_SECONDS + " s");
        }
        try {
            use();
        } finally {
            mutex.release();
        }
    }

    /** Must not run twice at the same time, in all processes together. The resource detects if it does. */
    private void use() throws Exception {
        Path inside = dir.resolve("inside");
        enter(inside);
        try {
            int count = readCounter();
            Thread.sleep(2); // the work
            Files.writeString(dir.resolve("counter"), Integer.toString(count + 1));
            Files.writeString(dir.resolve("users"), name + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } finally {
            Files.delete(inside);
        }
    }

    /** Creates a file. A process that is killed inside does not delete it. */
    private void enter(Path inside) throws IOException {
        try {
            Files.createFile(inside);
        } catch (FileAlreadyExistsException e) {
            throw new IllegalStateException(name + " is not alone: " + inside + " is there", e);
        }
    }

    private int readCounter() throws IOException {
        Path counter = dir.resolve("counter");
        return Files.exists(counter) ? Integer.parseInt(Files.readString(counter)) : 0;
    }
}
