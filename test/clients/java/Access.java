import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Permissions of clients. */
final class Access {
    private Access() {
    }

    static void digest() throws Exception {
        CuratorFramework owner = Script.authorized("ann:secret");
        CuratorFramework other = Script.client();
        owner.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/private", Nodes.bytes("x"));
        Control.ok("ACL for its owner", lines(owner));
        Control.ok("ACL for another", Control.failure(() -> lines(other)));
        Control.ok("read by another", Control.failure(() -> other.getData().forPath("/private")));
        // Depends on the version.
        Control.ok("exists by another", Control.outcome(() -> other.checkExists().forPath("/private")));
        Control.ok("set by another", Control.failure(() -> other.setData().forPath("/private")));
        Control.ok("create by another", Control.failure(() -> other.create().forPath("/private/child")));
        Control.ok("ACL set by another",
                Control.failure(() -> other.setACL().withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/private")));
        owner.create().withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/private/child");
        Control.ok("delete by another", Control.failure(() -> other.delete().forPath("/private/child")));
        open(owner, other);
    }

    private static void open(CuratorFramework owner, CuratorFramework other) throws Exception {
        List<ACL> readable = List.of(new ACL(ZooDefs.Perms.ALL, new Id("auth", "")),
                new ACL(ZooDefs.Perms.READ, ZooDefs.Ids.ANYONE_ID_UNSAFE));
        Stat stat = owner.setACL().withVersion(0).withACL(readable).forPath("/private");
        Control.ok("ACL changed", Nodes.describe(owner, stat));
        Control.ok("read by another now", new String(other.getData().forPath("/private")));
        Control.ok("ACL masked for another", lines(other));
        Control.ok("ACL at an old version",
                Control.failure(() -> owner.setACL().withVersion(0).withACL(readable).forPath("/private")));
        Control.ok("empty identity",
                Control.failure(() -> other.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/no-identity")));
    }

    /** Any client may watch any node, and receives events only of nodes that it may read. */
    static void watch() throws Exception {
        CuratorFramework owner = Script.authorized("ann:secret");
        CuratorFramework other = Script.client();
        Watches.Events mine = new Watches.Events();
        Watches.Events theirs = new Watches.Events();
        owner.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/secret");
        owner.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(mine).forPath("/secret");
        other.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(theirs).forPath("/secret");
        owner.setData().forPath("/secret", Nodes.bytes("1"));
        owner.create().withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/secret/child");
        owner.delete().forPath("/secret/child");
        owner.delete().forPath("/secret");
        Control.ok("events for the owner", Watches.flush(owner, mine));
        Control.ok("events for another", Watches.flush(other, theirs));
    }

    static void identity() throws Exception {
        ZooKeeper raw = Script.client().getZookeeperClient().getZooKeeper();
        raw.addAuthInfo("digest", Nodes.bytes("bob:secret"));
        Control.ok("who am I", raw.whoAmI().stream().map(Access::name).sorted().toList());
    }

    private static List<String> lines(CuratorFramework client) throws Exception {
        return client.getACL().forPath("/private").stream().map(acl -> acl.toString().strip()).toList();
    }

    private static String name(ClientInfo info) {
        return info.getAuthScheme() + "=" + info.getUser();
    }
}
