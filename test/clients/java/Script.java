import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;

/** Curator against a server: see the Go package beside this folder. */
public final class Script {
    private static final int SESSION_MS = 20_000;
    private static final int SHORT_SESSION_MS = 8_000;
    private static final int LONG_SESSION_MS = 60_000;
    private static final List<CuratorFramework> clients = new ArrayList<>();
    private static String direct;
    private static String proxied;

    private Script() {
    }

    private interface Section {
        void run() throws Exception;
    }

    public static void main(String[] args) {
        direct = args[0];
        proxied = args[1];
        Control.listen();
        try {
            runAll();
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void runAll() throws Exception {
        section(Nodes::modes);
        section(Nodes::versions);
        section(Nodes::errors);
        section(Nodes::helpers);
        section(Nodes::transactions);
        section(Nodes::reaped);
        section(Nodes::lists);
        section(Nodes::large);
        section(Nodes::chroot);
        section(Access::digest);
        section(Access::watch);
        section(Access::identity);
        section(Watches::oneShot);
        section(Watches::persistent);
        section(Watches::mixed);
        section(Watches::removed);
        section(Watches::cache);
        section(Locks::mutexes);
        section(Locks::readWrite);
        section(Locks::semaphore);
        section(Locks::multi);
        section(Leaders::latch);
        section(Leaders::selector);
        section(Recipes::counters);
        section(Recipes::barriers);
        section(Recipes::queue);
        section(Sessions::cut);
        section(Sessions::drop);
        section(Sessions::restart);
        section(Sessions::expiry);
        section(Sessions::expiryUnderRecipes);
        section(Sessions::silence);
        section(Sessions::manyWatches);
    }

    /** Runs one section with clients of its own. */
    private static void section(Section section) throws Exception {
        section.run();
        for (CuratorFramework client : clients) {
            client.close();
        }
        clients.clear();
    }

    /** Returns a connected client. */
    static CuratorFramework client() throws Exception {
        return start(builder(direct).build());
    }

    /** Returns a connected client whose connections can be cut. */
    static CuratorFramework proxiedClient() throws Exception {
        return start(builder(proxied).build());
    }

    /** Returns such a client, with a short session timeout. */
    static CuratorFramework shortLivedClient() throws Exception {
        return start(builder(proxied).sessionTimeoutMs(SHORT_SESSION_MS).build());
    }

    /** Returns such a client, with a session timeout that is longer than a restart of the server. */
    static CuratorFramework longLivedClient() throws Exception {
        return start(builder(proxied).sessionTimeoutMs(LONG_SESSION_MS).build());
    }

    /** Returns a client with a chroot. */
    static CuratorFramework below(String path) throws Exception {
        return start(builder(direct + path).build());
    }

    static CuratorFramework authorized(String user) throws Exception {
        return start(builder(direct).authorization("digest", user.getBytes()).build());
    }

    private static CuratorFrameworkFactory.Builder builder(String address) {
        return CuratorFrameworkFactory.builder().connectString(address).sessionTimeoutMs(SESSION_MS)
                .connectionTimeoutMs(SESSION_MS).maxCloseWaitMs(10).retryPolicy(new RetryNTimes(300, 100));
    }

    private static CuratorFramework start(CuratorFramework client) throws Exception {
        clients.add(client);
        client.start();
        Control.check(client.blockUntilConnected(60, TimeUnit.SECONDS), "not connected");
        return client;
    }
}
