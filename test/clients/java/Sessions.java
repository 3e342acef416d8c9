import static org.apache.curator.framework.state.ConnectionState.CONNECTED;
import static org.apache.curator.framework.state.ConnectionState.LOST;
import static org.apache.curator.framework.state.ConnectionState.RECONNECTED;
import static org.apache.curator.framework.state.ConnectionState.SUSPENDED;

import java.util.HexFormat;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Connections that are lost and restored, and sessions that end. */
final class Sessions {
    private static final int MANY = 3_000;

    private Sessions() {
    }

    /** Returns a queue of the later connection states of a client. */
    private static BlockingQueue<ConnectionState> states(CuratorFramework client) {
        BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state != CONNECTED) { // the first connection may be reported late
                states.add(state);
            }
        });
        return states;
    }

    private static void expect(BlockingQueue<ConnectionState> states, ConnectionState want) throws Exception {
        Control.equal("connection state", want, Control.next("the state " + want, states));
    }

    private static ZooKeeper raw(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper();
    }

    /** A client receives what happened while it was away when it reconnects. */
    static void cut() throws Exception {
        CuratorFramework client = Script.proxiedClient();
        CuratorFramework other = Script.client();
        BlockingQueue<ConnectionState> states = states(client);
        long session = raw(client).getSessionId();
        Watches.Events data = new Watches.Events();
        Watches.Events children = new Watches.Events();
        Watches.Events coming = new Watches.Events();
        Watches.Events going = new Watches.Events();
        client.create().creatingParentsIfNeeded().withMode(CreateMode.EPHEMERAL).forPath("/cut/mine");
        other.create().forPath("/cut/goes");
        client.getData().usingWatcher(data).forPath("/cut");
        client.getChildren().usingWatcher(children).forPath("/cut");
        client.checkExists().usingWatcher(coming).forPath("/cut/comes");
        client.checkExists().usingWatcher(going).forPath("/cut/goes");
        Control.ask("cut");
        expect(states, SUSPENDED);
        other.setData().forPath("/cut", Nodes.bytes("changed"));
        other.create().forPath("/cut/comes");
        other.delete().forPath("/cut/goes");
        Control.ask("mend");
        expect(states, RECONNECTED);
        Control.equal("session", session, raw(client).getSessionId());
        Control.equal("owner", session, other.checkExists().forPath("/cut/mine").getEphemeralOwner());
        Control.ok("missed events", data.next(), children.next(), coming.next(), going.next());
    }

    /** Watches of all kinds, the credentials and the session survive a lost connection. */
    static void drop() throws Exception {
        CuratorFramework client = Script.proxiedClient();
        CuratorFramework other = Script.client();
        BlockingQueue<ConnectionState> states = states(client);
        raw(client).addAuthInfo("digest", Nodes.bytes("eve:secret"));
        client.create().withMode(CreateMode.EPHEMERAL).withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/dropped-mine");
        other.create().forPath("/dropped");
        Watches.Events once = new Watches.Events();
        Watches.Events always = new Watches.Events();
        Watches.Events below = new Watches.Events();
        client.getData().usingWatcher(once).forPath("/dropped");
        client.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(always).forPath("/dropped-2");
        client.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(below).forPath("/dropped-3");
        Control.ask("drop");
        expect(states, SUSPENDED);
        expect(states, RECONNECTED);
        other.setData().forPath("/dropped", Nodes.bytes("1"));
        Control.ok("watch after a reconnect", once.next());
        other.create().forPath("/dropped-2");
        other.setData().forPath("/dropped-2", Nodes.bytes("1"));
        Control.ok("persistent watch after a reconnect", always.next(), always.next());
        other.create().creatingParentsIfNeeded().forPath("/dropped-3/child");
        Control.ok("recursive watch after a reconnect", below.next(), below.next());
        client.setData().forPath("/dropped-mine", Nodes.bytes("2"));
        Control.ok("credentials after a reconnect", client.checkExists().forPath("/dropped-mine").getVersion());
    }

    /** A restarted server keeps sessions, so a lock stays held. */
    static void restart() throws Exception {
        CuratorFramework client = Script.longLivedClient();
        BlockingQueue<ConnectionState> states = states(client);
        long session = raw(client).getSessionId();
        InterProcessMutex mutex = new InterProcessMutex(client, "/restart-lock");
        mutex.acquire();
        client.create().forPath("/restarted", Nodes.bytes("0"));
        Watches.Events events = new Watches.Events();
        client.getData().usingWatcher(events).forPath("/restarted");
        Control.ask("stop");
        expect(states, SUSPENDED);
        Control.ask("start");
        expect(states, RECONNECTED);
        Control.equal("session", session, raw(client).getSessionId());
        CuratorFramework other = Script.client();
        String node = mutex.getParticipantNodes().iterator().next();
        Control.equal("owner", session, other.checkExists().forPath(node).getEphemeralOwner());
        Control.ok("lock across a restart", new InterProcessMutex(other, "/restart-lock").acquire(0, TimeUnit.SECONDS));
        other.setData().withVersion(0).forPath("/restarted", Nodes.bytes("1"));
        Control.ok("watch across a restart", events.next());
        mutex.release();
    }

    private static void expire(CuratorFramework client) throws Exception {
        ZooKeeper raw = raw(client);
        Control.ask("expire " + Long.toHexString(raw.getSessionId()) + " "
                + HexFormat.of().formatHex(raw.getSessionPasswd()));
    }

    static void expiry() throws Exception {
        CuratorFramework client = Script.client();
        CuratorFramework other = Script.client();
        BlockingQueue<ConnectionState> states = states(client);
        long session = raw(client).getSessionId();
        Watches.Events deletion = new Watches.Events();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/expired");
        other.checkExists().usingWatcher(deletion).forPath("/expired");
        expire(client);
        Control.ok("the others see the end of a session", deletion.next(), other.checkExists().forPath("/expired"));
        for (ConnectionState state = SUSPENDED; state != LOST; state = Control.next("the state LOST", states)) {
            Control.check(state == SUSPENDED || state == RECONNECTED, "connection state " + state);
        }
        expect(states, RECONNECTED);
        Control.check(raw(client).getSessionId() != session, "the old session has not ended");
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/expired");
        Control.ok("a new session", Nodes.describe(client, client.checkExists().forPath("/expired")));
    }

    /** Recipes that recover by themselves. */
    static void expiryUnderRecipes() throws Exception {
        CuratorFramework client = Script.client();
        CuratorFramework other = Script.client();
        try (LeaderLatch first = new LeaderLatch(client, "/expired-latch", "first");
                LeaderLatch second = new LeaderLatch(other, "/expired-latch", "second");
                PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/expired-node",
                        Nodes.bytes("x"))) {
            node.start();
            first.start();
            Control.until("the first leads", first::hasLeadership);
            second.start();
            Control.until("there are two", () -> first.getParticipants().size() == 2);
            long session = raw(client).getSessionId();
            expire(client);
            Control.until("the second leads", second::hasLeadership);
            Control.until("the first is back", () -> second.getParticipants().size() == 2 && !first.hasLeadership());
            Control.until("the node is back", () -> Sessions.owner(other, "/expired-node") != 0
                    && Sessions.owner(other, "/expired-node") != session);
            Control.ok("recipes after the end of a session", second.getLeader().getId());
        }
    }

    /** Only the server ends the session, when it has received nothing for long enough. */
    static void silence() throws Exception {
        CuratorFramework client = Script.shortLivedClient();
        BlockingQueue<ConnectionState> states = states(client);
        long session = raw(client).getSessionId();
        int timeout = raw(client).getSessionTimeout();
        Watches.Events deletion = new Watches.Events();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/silent");
        Script.client().checkExists().usingWatcher(deletion).forPath("/silent");
        Control.ask("cut");
        Control.ok("the end of a silent session", deletion.next(), "after", timeout, "ms");
        Control.ask("mend");
        // A connection that was lost before the cut, on a busy machine, has come back with the old session.
        for (ConnectionState state = SUSPENDED; state != RECONNECTED || raw(client).getSessionId() == session;
                state = Control.next("a new session", states)) {
            Control.check(state == SUSPENDED || state == LOST || state == RECONNECTED, "connection state " + state);
        }
        Control.ok("after silence", client.checkExists().forPath("/silent"));
    }

    /** More watches than fit into one request. */
    static void manyWatches() throws Exception {
        CuratorFramework client = Script.proxiedClient();
        CuratorFramework other = Script.client();
        BlockingQueue<ConnectionState> states = states(client);
        Watches.Events events = new Watches.Events();
        String prefix = "/" + "many".repeat(20) + "-";
        CountDownLatch answers = new CountDownLatch(MANY);
        for (int i = 0; i < MANY; i++) {
            client.checkExists().usingWatcher(events).inBackground((c, event) -> answers.countDown())
                    .forPath(prefix + i);
        }
        Control.check(answers.await(1, TimeUnit.MINUTES), "watches not set");
        Control.ask("drop");
        expect(states, SUSPENDED);
        expect(states, RECONNECTED);
        for (int i : new int[] {0, MANY / 2, MANY - 1}) {
            other.create().forPath(prefix + i);
            Control.ok("one of many watches", events.next());
        }
    }

    private static long owner(CuratorFramework client, String path) throws Exception {
        Stat stat = client.checkExists().forPath(path);
        return stat == null ? 0 : stat.getEphemeralOwner();
    }
}
