import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A workload that is open: its parameters, and its sessions. */
abstract class Job implements AutoCloseable {
    private static final int SESSION_MS = 30_000;
    private static final int CONNECT_MS = 15_000;

    private final Map<String, String> words = new HashMap<>();
    final List<CuratorFramework> clients = new ArrayList<>();
    final String path;
    final String kind;

    Job(Map<String, String> words, int clients) throws InterruptedException {
        this.words.putAll(words);
        path = words.get("path");
        kind = words.get("kind");
        for (int i = 0; i < clients; i++) {
            CuratorFramework client = CuratorFrameworkFactory.builder().connectString(words.get("servers"))
                .sessionTimeoutMs(SESSION_MS).connectionTimeoutMs(CONNECT_MS)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).ensembleTracker(false).build();
            client.start();
            this.clients.add(client);
            if (!client.blockUntilConnected(60, TimeUnit.SECONDS)) {
                close();
                throw new IllegalStateException("no session");
            }
        }
    }

    /** Takes the parameters of a line, without the verb and the name of the job. */
    static Job open(String line) throws Exception {
        Map<String, String> words = new HashMap<>();
        for (String word : line.split(" ")) {
            String[] pair = word.split("=", 2);
            words.put(pair[0], pair[1]);
        }
        switch (words.get("job")) {
            case "loop":
                return new Loop(words);
            case "queue":
                return new LockQueue(words);
            default:
                throw new UnsupportedOperationException();
        }
    }

    static int number(Map<String, String> words, String key) {
        return Integer.parseInt(words.getOrDefault(key, "0"));
    }

    int number(String key) {
        return number(words, key);
    }

    String word(String key) {
        return words.getOrDefault(key, "");
    }

    boolean is(String key) {
        return "true".equals(words.get(key));
    }

    /** Measures for so long, and returns the result. */
    abstract String run(long nanos) throws Exception;

    @Override
    public void close() {
        clients.forEach(CuratorFramework::close);
    }

    static String result(long ops, long nanos, long overlaps, Histogram latencies) {
        return "ops=" + ops + " nanos=" + nanos + " overlaps=" + overlaps + " hist=" + latencies;
    }
}
