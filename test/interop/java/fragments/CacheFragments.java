import java.util.Optional;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;

/** The Java fragments of docs/porting-from-curator.md about caches and persistent watches. */
abstract class CacheFragments {
    private CuratorFramework client;

    abstract void changed(String path);

    // fragment cache
    CuratorCache follow() {
        CuratorCache cache = CuratorCache.build(client, "/config");
        cache.listenable().addListener(
            CuratorCacheListener.builder()
                .forCreates(node -> changed(node.getPath()))
                .forChanges((old, node) -> changed(node.getPath()))
                .forDeletes(node -> changed(node.getPath()))
                .build());
        cache.start();
        return cache;
    }

    String timeout(CuratorCache cache) {
        Optional<ChildData> node = cache.get("/config/timeout");
        return node.map(found -> new String(found.getData()))
            .orElse("10s");
    }
    // end

    // fragment persistent-watch
    PersistentWatcher watchTree(String path) {
        PersistentWatcher watcher =
            new PersistentWatcher(client, path, true);
        watcher.getListenable().addListener(
            event -> changed(event.getPath()));
        watcher.start();
        return watcher;
    }
    // end
}
