import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;

/** The Java fragments of docs/porting-from-curator.md about caches that are deprecated. */
@SuppressWarnings("deprecation")
abstract class DeprecatedCacheFragments {
    private CuratorFramework client;

    abstract void present(String path);

    abstract void gone(String path);

    // fragment path-children-cache
    PathChildrenCache followWorkers() throws Exception {
        PathChildrenCache workers =
            new PathChildrenCache(client, "/workers", true);
        workers.getListenable().addListener((client, event) -> {
            switch (event.getType()) {
                case CHILD_ADDED:
                case CHILD_UPDATED:
                    present(event.getData().getPath());
                    break;
                case CHILD_REMOVED:
                    gone(event.getData().getPath());
                    break;
                default: // of the connection
            }
        });
        workers.start(
            PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        return workers;
    }

    List<ChildData> currentData(PathChildrenCache workers) {
        return workers.getCurrentData();
    }
    // end
}
