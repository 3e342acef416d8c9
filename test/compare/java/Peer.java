import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A program that uses InterProcessMutex of Curator: see the Go package peer. */
public final class Peer {
    private static final int CONNECT_MS = 15_000;
    private static final int PAUSE_MS = 100;
    private static final int RETRIES = 5;
    private static final int PER_E = 500;

    private final CuratorFramework client;
    private final InterProcessMutex lock;
    private final String path;
    private final List<InterProcessMutex> many = new ArrayList<>();
    /** The connection was suspended after the lock was acquired: then its documentation says to stop. */
    private volatile boolean suspended;

    private Peer(String servers, String name, int leaseMs) throws Exception {
        client = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(leaseMs)
            .connectionTimeoutMs(CONNECT_MS).retryPolicy(new ExponentialBackoffRetry(PAUSE_MS, RETRIES))
            .ensembleTracker(false).build();
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                suspended = true;
            }
        });
        client.start();
        if (!client.blockUntilConnected(1, TimeUnit.MINUTES)) {
            throw new IllegalStateException("no session");
        }
        path = "/" + name;
        lock = new InterProcessMutex(client, path);
    }

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer(args[0], args[1], Integer.parseInt(args[2]));
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = peer.obey(line.split(" "));
            } catch (Exception e) {
                answer = "failed " + e.toString().replace('\n', ' ');
            }
            say(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "acquire":
                suspended = false;
                lock.acquire();
                return "held 0 " + now();
            case "look":
                return lock.isAcquiredInThisProcess() && !suspended ? "valid" : "lost";
            case "write":
                return "none";
            case "release":
                long began = now();
                lock.release();
                return "released " + began;
            case "loop":
                return loop(Long.parseLong(words[1]) * 1_000_000);
            case "many":
                return "many " + acquireMany(Integer.parseInt(words[1]));
            case "none":
                return "freed " + releaseMany();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private String loop(long nanos) throws Exception {
        Map<Integer, Integer> latencies = new TreeMap<>();
        int ops = 0;
        for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ops++) {
            long began = System.nanoTime();
            lock.acquire();
            lock.release();
            latencies.merge((int) (Math.log(System.nanoTime() - began) * PER_E), 1, Integer::sum);
        }
        StringBuilder text = new StringBuilder();
        latencies.forEach(
            (bucket, n) -> text.append(text.length() > 0 ? "," : "").append(bucket).append(':').append(n));
        return "looped ops=" + ops + " hist=" + text;
    }

    private long acquireMany(int n) throws Exception {
        long began = System.nanoTime();
        for (int i = 0; i < n; i++) {
            InterProcessMutex one = new InterProcessMutex(client, path + "-" + i);
            one.acquire();
            many.add(one);
        }
        return System.nanoTime() - began;
    }

    private long releaseMany() throws Exception {
        long began = System.nanoTime();
        for (InterProcessMutex one : many) {
            one.release();
        }
        many.clear();
        return System.nanoTime() - began;
    }

    private static long now() {
        java.time.Instant t = java.time.Instant.now();
        return t.getEpochSecond() * 1_000_000_000 + t.getNano();
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
