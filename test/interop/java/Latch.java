import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;

/** A leadership as a lock, with a new candidate for each acquire. */
final class Latch implements Contended {
    private final CuratorFramework client;
    private final String path;
    private final String id;
    private LeaderLatch latch;

    Latch(CuratorFramework client, String path, String id) {
        this.client = client;
        this.path = path;
        this.id = id;
    }

    @Override
    public boolean acquire(long ms) throws Exception {
        latch = new LeaderLatch(client, path, id);
        latch.start();
        if (latch.await(ms < 0 ? Long.MAX_VALUE : ms, TimeUnit.MILLISECONDS)) {
            return true;
        }
        latch.close();
        return false;
    }

    @Override
    public void release() throws Exception {
        latch.close();
    }
}
