import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;

/** Watches that fire once, and persistent ones. */
final class Watches {
    private Watches() {
    }

    /** Keeps the events of one watcher. */
    static final class Events implements CuratorWatcher {
        final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Watcher.Event.EventType.None) {
                seen.add(event.getType() + " " + event.getPath());
            }
        }

        String next() throws Exception {
            return Control.next("an event", seen);
        }
    }

    static void oneShot() throws Exception {
        CuratorFramework client = Script.client();
        CuratorFramework other = Script.client();
        Events events = new Events();
        client.checkExists().usingWatcher(events).forPath("/watched");
        other.create().forPath("/watched");
        Control.ok("watch for a node to come", events.next());
        client.getData().usingWatcher(events).forPath("/watched");
        other.setData().forPath("/watched", Nodes.bytes("1"));
        other.setData().forPath("/watched", Nodes.bytes("2"));
        Control.ok("watch its data", events.next());
        client.getChildren().usingWatcher(events).forPath("/watched");
        other.create().forPath("/watched/child");
        Control.ok("watch its children", events.next());
        client.checkExists().usingWatcher(events).forPath("/watched/child");
        other.delete().forPath("/watched/child");
        Control.ok("watch for a node to go", events.next());
        Control.ok("each fires once", flush(client, events));
    }

    /** Returns the events up to now: the answer to a read comes after earlier events. */
    static List<String> flush(CuratorFramework client, Events events) throws Exception {
        Events last = new Events();
        client.create().forPath("/flush");
        client.getData().usingWatcher(last).forPath("/flush");
        client.delete().forPath("/flush");
        last.next();
        return List.copyOf(events.seen);
    }

    static void persistent() throws Exception {
        CuratorFramework client = Script.client();
        CuratorFramework other = Script.client();
        for (AddWatchMode mode : AddWatchMode.values()) {
            Events events = new Events();
            String path = "/" + mode.name().toLowerCase();
            client.watchers().add().withMode(mode).usingWatcher(events).forPath(path);
            other.create().forPath(path);
            other.setData().forPath(path, Nodes.bytes("1"));
            other.setData().forPath(path, Nodes.bytes("2"));
            other.create().forPath(path + "/child");
            other.setData().forPath(path + "/child", Nodes.bytes("1"));
            other.delete().forPath(path + "/child");
            other.delete().forPath(path);
            other.create().forPath(path);
            client.sync().forPath(path);
            Control.ok("watch " + mode, flush(client, events));
        }
    }

    /** Several watches on one node. The behaviour of persistent ones depends on the server's version. */
    static void mixed() throws Exception {
        CuratorFramework client = Script.client();
        for (AddWatchMode mode : AddWatchMode.values()) {
            String path = "/mixed-" + mode.name().toLowerCase();
            Events always = new Events();
            Events once = new Events();
            Events children = new Events();
            client.create().forPath(path);
            client.watchers().add().withMode(mode).usingWatcher(always).forPath(path);
            client.getData().usingWatcher(once).forPath(path);
            client.getChildren().usingWatcher(children).forPath(path);
            client.setData().forPath(path, Nodes.bytes("1"));
            client.create().forPath(path + "/child");
            client.setData().forPath(path, Nodes.bytes("2"));
            client.delete().forPath(path + "/child");
            Control.ok("mixed " + mode, flush(client, always), flush(client, once), flush(client, children));
        }
    }

    static void removed() throws Exception {
        CuratorFramework client = Script.client();
        Events events = new Events();
        client.create().forPath("/removed");
        client.getData().usingWatcher(events).forPath("/removed");
        client.watchers().remove(events).ofType(Watcher.WatcherType.Data).forPath("/removed");
        Control.ok("remove a watch", events.next());
        client.setData().forPath("/removed", Nodes.bytes("1"));
        Control.ok("a removed watch is silent", flush(client, events));
        Control.ok("remove a watch twice",
                Control.failure(() -> client.watchers().remove(events).ofType(Watcher.WatcherType.Data)
                        .forPath("/removed")));
        client.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(events).forPath("/removed");
        client.watchers().remove(events).ofType(Watcher.WatcherType.Any).forPath("/removed");
        Control.ok("remove a persistent watch", events.next());
        client.setData().forPath("/removed", Nodes.bytes("2"));
        Control.ok("a removed persistent watch is silent", flush(client, events));
    }

    static void cache() throws Exception {
        CuratorFramework client = Script.client();
        CuratorFramework other = Script.client();
        other.create().creatingParentsIfNeeded().forPath("/cached/a", Nodes.bytes("1"));
        BlockingQueue<String> changes = new LinkedBlockingQueue<>();
        try (CuratorCache cache = CuratorCache.build(client, "/cached")) {
            cache.listenable().addListener((type, before, now) ->
                    changes.add(type + " " + (now == null ? before : now).getPath()));
            cache.start();
            Control.until("the cache is filled", () -> cache.size() == 2);
            Control.next("the first change", changes);
            Control.next("the second change", changes);
            other.create().forPath("/cached/b", Nodes.bytes("2"));
            Control.ok("cache", Control.next("a created node", changes));
            other.setData().forPath("/cached/b", Nodes.bytes("3"));
            Control.ok("cache", Control.next("a changed node", changes));
            other.delete().forPath("/cached/a");
            Control.ok("cache", Control.next("a deleted node", changes));
            Control.ok("cached", cache.stream().sorted(Comparator.comparing(ChildData::getPath))
                    .filter(child -> !child.getPath().equals("/cached")) // its data is an address
                    .map(child -> child.getPath() + "=" + new String(child.getData())).toList());
        }
    }
}
