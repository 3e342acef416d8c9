import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Nodes of all kinds, and the operations on them. */
final class Nodes {
    private Nodes() {
    }

    static void modes() throws Exception {
        CuratorFramework client = Script.client();
        client.create().forPath("/modes");
        for (CreateMode mode : CreateMode.values()) {
            Stat stat = new Stat();
            String path = mode.isTTL()
                    ? client.create().withTtl(600_000).storingStatIn(stat).withMode(mode)
                            .forPath("/modes/" + mode, bytes("data"))
                    : client.create().storingStatIn(stat).withMode(mode).forPath("/modes/" + mode, bytes("data"));
            Control.equal("the stat of " + path, client.checkExists().forPath(path), stat);
            Control.ok("create " + mode, path, describe(client, stat));
        }
        String guarded = client.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/modes/p");
        Control.ok("create with protection", guarded.replaceAll("_c_[0-9a-f-]{36}-", "<guid>"));
        Control.ok("parent", describe(client, client.checkExists().forPath("/modes")));
    }

    static void versions() throws Exception {
        CuratorFramework client = Script.client();
        client.create().forPath("/versions", bytes("0"));
        Stat first = client.setData().withVersion(0).forPath("/versions", bytes("one"));
        Control.ok("set at version", describe(client, first));
        Control.ok("set at an old version",
                Control.failure(() -> client.setData().withVersion(0).forPath("/versions", bytes("x"))));
        Control.ok("set at any version", describe(client, client.setData().forPath("/versions", bytes("two"))));
        Stat stat = new Stat();
        byte[] data = client.getData().storingStatIn(stat).forPath("/versions");
        Control.ok("read", new String(data, UTF_8), describe(client, stat));
        Control.ok("delete at an old version",
                Control.failure(() -> client.delete().withVersion(1).forPath("/versions")));
        client.delete().withVersion(2).forPath("/versions");
        Control.ok("exists when deleted", client.checkExists().forPath("/versions"));
        client.create().forPath("/versions", new byte[0]);
        Control.ok("empty data", client.getData().forPath("/versions").length);
    }

    static void errors() throws Exception {
        CuratorFramework client = Script.client();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/errors-ephemeral");
        client.create().creatingParentsIfNeeded().forPath("/errors/child");
        Control.ok("exists on a missing node", client.checkExists().forPath("/errors/missing"));
        Control.ok("read a missing node", Control.failure(() -> client.getData().forPath("/errors/missing")));
        Control.ok("children of a missing node",
                Control.failure(() -> client.getChildren().forPath("/errors/missing")));
        Control.ok("set a missing node", Control.failure(() -> client.setData().forPath("/errors/missing")));
        Control.ok("create without parent", Control.failure(() -> client.create().forPath("/errors/missing/child")));
        Control.ok("create again", Control.failure(() -> client.create().forPath("/errors/child")));
        Control.ok("delete with children", Control.failure(() -> client.delete().forPath("/errors")));
        Control.ok("child of an ephemeral", Control.failure(() -> client.create().forPath("/errors-ephemeral/child")));
        Control.ok("reserved node", Control.failure(() -> client.delete().forPath("/zookeeper")));
    }

    static void helpers() throws Exception {
        CuratorFramework client = Script.client();
        client.create().creatingParentContainersIfNeeded().forPath("/helpers/a/b", bytes("1"));
        client.create().orSetData().forPath("/helpers/a/b", bytes("2"));
        client.create().idempotent().forPath("/helpers/a/c", bytes("3"));
        client.setData().idempotent().withVersion(0).forPath("/helpers/a/c", bytes("4"));
        Control.ok("or set data", new String(client.getData().forPath("/helpers/a/b"), UTF_8));
        Control.ok("idempotent", new String(client.getData().forPath("/helpers/a/c"), UTF_8));
        client.sync().forPath("/helpers");
        client.delete().deletingChildrenIfNeeded().forPath("/helpers");
        client.delete().quietly().forPath("/helpers");
        Control.ok("deleted with children", client.checkExists().forPath("/helpers"));
    }

    static void transactions() throws Exception {
        CuratorFramework client = Script.client();
        client.create().forPath("/tx", bytes("0"));
        List<CuratorTransactionResult> results = client.transaction().forOperations(
                client.transactionOp().create().forPath("/tx/a", bytes("a")),
                client.transactionOp().create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/tx/s-"),
                client.transactionOp().check().withVersion(0).forPath("/tx"),
                client.transactionOp().setData().withVersion(0).forPath("/tx", bytes("1")),
                client.transactionOp().delete().forPath("/tx/a"));
        for (CuratorTransactionResult result : results) {
            Stat stat = result.getResultStat();
            Control.ok("in a transaction", result.getType(), result.getResultPath(),
                    stat == null ? "" : describe(client, stat));
        }
        failing(client);
    }

    private static void failing(CuratorFramework client) throws Exception {
        try {
            client.transaction().forOperations(
                    client.transactionOp().create().forPath("/tx/b"),
                    client.transactionOp().setData().withVersion(7).forPath("/tx"),
                    client.transactionOp().delete().forPath("/tx/missing"));
            throw new AssertionError("a transaction that cannot be done was done");
        } catch (KeeperException e) {
            StringBuilder codes = new StringBuilder();
            for (OpResult result : e.getResults()) {
                codes.append(' ').append(((OpResult.ErrorResult) result).getErr());
            }
            Control.ok("a failed transaction", e.getClass().getSimpleName(), codes);
        }
        Control.ok("nothing of it is done", client.getChildren().forPath("/tx"));
    }

    /** The server deletes containers when they are empty again, and TTL nodes when they are old. */
    static void reaped() throws Exception {
        CuratorFramework client = Script.client();
        client.create().withMode(CreateMode.CONTAINER).forPath("/container");
        client.create().forPath("/container/child");
        client.delete().forPath("/container/child");
        client.create().withTtl(100).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl");
        client.create().withMode(CreateMode.CONTAINER).forPath("/container-unused");
        Control.until("the container is deleted", () -> client.checkExists().forPath("/container") == null);
        Control.until("the TTL node is deleted", () -> client.checkExists().forPath("/ttl") == null);
        Control.ok("reaped", "the unused container is kept:",
                client.checkExists().forPath("/container-unused") != null);
    }

    static void lists() throws Exception {
        CuratorFramework client = Script.client();
        for (String child : List.of("b", "a", "c")) {
            client.create().creatingParentsIfNeeded().withMode(CreateMode.EPHEMERAL)
                    .forPath("/lists/" + child, bytes(child));
        }
        client.create().creatingParentsIfNeeded().forPath("/lists-2/x");
        Stat stat = new Stat();
        List<String> children = client.getChildren().storingStatIn(stat).forPath("/lists");
        Control.ok("children", children.stream().sorted().toList(), describe(client, stat));
        Control.ok("ephemerals",
                client.getZookeeperClient().getZooKeeper().getEphemerals("/lists").stream().sorted().toList());
        Control.ok("all children", client.getZookeeperClient().getZooKeeper().getAllChildrenNumber("/lists"));
        List<OpResult> read = client.getZookeeperClient().getZooKeeper().multi(
                List.of(Op.getData("/lists/a"), Op.getData("/lists/missing"), Op.getChildren("/lists-2")));
        Control.ok("several reads", new String(((OpResult.GetDataResult) read.get(0)).getData(), UTF_8),
                ((OpResult.ErrorResult) read.get(1)).getErr(),
                ((OpResult.GetChildrenResult) read.get(2)).getChildren());
        Control.ok("configuration", client.getConfig().forEnsemble().length);
    }

    /** A request may not be larger than about a megabyte. */
    static void large() throws Exception {
        CuratorFramework client = Script.client();
        ZooKeeper raw = client.getZookeeperClient().getZooKeeper();
        byte[] most = new byte[1_000_000];
        Arrays.fill(most, (byte) 'x');
        client.create().forPath("/large", most);
        Control.check(Arrays.equals(most, client.getData().forPath("/large")), "a megabyte came back changed");
        long session = raw.getSessionId();
        Control.ok("too large", Control.failure(() -> raw.setData("/large", new byte[1_100_000], -1)));
        Control.ok("after that", client.checkExists().forPath("/large").getDataLength(), session == raw.getSessionId());
    }

    static void chroot() throws Exception {
        Script.client().create().forPath("/chroot", bytes("root"));
        CuratorFramework client = Script.below("/chroot");
        Watches.Events events = new Watches.Events();
        client.checkExists().usingWatcher(events).forPath("/child");
        Control.ok("chroot", client.create().forPath("/child"), events.next());
        Control.ok("root of a chroot", new String(client.getData().forPath("/"), UTF_8),
                client.getChildren().forPath("/"));
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    /** The children of a node, sorted. A missing node has none: the server deletes containers that are empty. */
    static List<String> children(CuratorFramework client, String path) throws Exception {
        try {
            return client.getChildren().forPath(path).stream().sorted().toList();
        } catch (KeeperException.NoNodeException e) {
            return List.of();
        }
    }

    /** Returns what two servers must have in common of a node: not the times of its changes, but their order. */
    static String describe(CuratorFramework client, Stat stat) throws Exception {
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        String owner = stat.getEphemeralOwner() == 0 ? "none" : stat.getEphemeralOwner() == session ? "me" : "another";
        return String.format("version %d/%d/%d, %d bytes, %d children, owner %s, changed %+d, "
                + "children changed %+d, mtime%sctime",
                stat.getVersion(), stat.getCversion(), stat.getAversion(), stat.getDataLength(),
                stat.getNumChildren(), owner, stat.getMzxid() - stat.getCzxid(), stat.getPzxid() - stat.getCzxid(),
                stat.getMtime() < stat.getCtime() ? "<" : ">=");
    }
}
