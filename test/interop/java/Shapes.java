import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.RetryOneTime;

/** The nodes of recipes that have no other request here, as they are while the recipes are in use. */
final class Shapes {
    private static final long VALUE = 7;

    private Shapes() {
    }

    static String leave(CuratorFramework client, String kind, String path) throws Exception {
        switch (kind) {
            case "barrier":
                new DistributedBarrier(client, path).setBarrier();
                break;
            case "double-barrier":
                new DistributedDoubleBarrier(client, path, 1).enter();
                break;
            case "atomic":
                new DistributedAtomicLong(client, path, new RetryOneTime(1)).initialize(VALUE);
                break;
            default:
                throw new IllegalArgumentException(kind);
        }
        return "left";
    }
}
