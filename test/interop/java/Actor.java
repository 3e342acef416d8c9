import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryForever;

/** A thread with a client of its own, which handles one request after the other. */
final class Actor {
    private static final int PAUSE_MS = 100;
    private static final int CONNECT_MS = 15_000;

    private final String name;
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private final Map<String, Contended> all = new HashMap<>();
    private final Locks locks = new Locks();
    private final Groups groups = new Groups();
    private final Caches caches = new Caches();
    private final Numbers numbers = new Numbers();
    private final Barriers barriers = new Barriers();
    private CuratorFramework client;
    private Services services;

    Actor(String name) {
        this.name = name;
    }

    /** Answers the requests in order, with one line each. */
    void tell(String[] words) {
        thread.execute(() -> {
            String answer;
            try {
                answer = act(words);
            } catch (Exception e) {
                answer = "failed " + e;
            }
            Peer.say(name + " " + answer.replace('\n', ' '));
        });
    }

    private String act(String[] words) throws Exception {
        if (client == null) {
            client = CuratorFrameworkFactory.builder().connectString(Peer.servers).sessionTimeoutMs(Peer.sessionMs)
                    .connectionTimeoutMs(CONNECT_MS).maxCloseWaitMs(10).retryPolicy(new RetryForever(PAUSE_MS)).build();
            client.start();
        }
        switch (words[1]) {
            case "make":
                all.put(words[2], locks.make(client, words));
                return "made";
            case "acquire":
                return all.get(words[2]).acquire(Long.parseLong(words[3])) ? "held" : "busy";
            case "release":
                all.get(words[2]).release();
                return "released";
            case "work":
                return "worked " + work(all.get(words[2]), words[3], words[4]);
            case "participants":
                return String.join(" ", all.get(words[2]).participants());
            case "revocable":
                all.get(words[2]).revocable(() -> Peer.say(name + " ! revoked " + words[2]));
                return "revocable";
            case "revoke":
                Revoker.attemptRevoke(client, words[2]);
                return "asked";
            case "limit":
                return setLimit(words[2], Integer.parseInt(words[3]));
            case "join":
            case "payload":
            case "members":
            case "leave":
            case "keep":
            case "drop":
                return groups.act(client, words);
            case "cache":
            case "cached":
            case "uncache":
                return caches.act(client, words);
            case "add":
                return numbers.act(client, words);
            case "set-barrier":
            case "remove-barrier":
            case "wait-barrier":
            case "enter":
            case "exit":
                return barriers.act(client, words);
            case "services":
                services = new Services(client, words[2], Boolean.parseBoolean(words[3]));
                return "made";
            case "service":
                return services.act(words);
            case "leave-shape":
                return Shapes.leave(client, words[2], words[3]);
            default:
                throw new IllegalArgumentException(words[1]);
        }
    }

    /** Acquires and releases until the resource has enough. */
    private int work(Contended lock, String resource, String role) throws Exception {
        int turns = 0;
        try (Resource uses = new Resource(resource, role)) {
            for (boolean enough = false; !enough; turns++) {
                lock.acquire(-1);
                enough = uses.enter();
                uses.leave();
                lock.release();
            }
        }
        return turns;
    }

    private String setLimit(String node, int limit) throws Exception {
        try (SharedCount count = new SharedCount(client, node, limit)) {
            count.start();
            count.setCount(limit);
        }
        return "set";
    }

    void close() throws InterruptedException {
        thread.shutdownNow();
        thread.awaitTermination(1, TimeUnit.SECONDS);
        if (client != null) {
            client.close();
        }
    }
}
