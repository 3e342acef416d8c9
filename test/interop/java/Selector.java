import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;

/** A leadership as a lock, with a new candidate for each acquire. */
final class Selector implements Contended {
    private final CuratorFramework client;
    private final String path;
    private final String id;
    private LeaderSelector selector;
    private Term term;

    Selector(CuratorFramework client, String path, String id) {
        this.client = client;
        this.path = path;
        this.id = id;
    }

    @Override
    public boolean acquire(long ms) throws Exception {
        term = new Term();
        selector = new LeaderSelector(client, path, term);
        selector.setId(id);
        selector.start();
        if (term.begun.await(ms < 0 ? Long.MAX_VALUE : ms, TimeUnit.MILLISECONDS)) {
            return true;
        }
        selector.close();
        return false;
    }

    @Override
    public void release() throws Exception {
        term.resigned.countDown();
        term.over.await();
        selector.close();
    }

    /** Leads until it resigns. */
    private static final class Term extends LeaderSelectorListenerAdapter {
        private final CountDownLatch begun = new CountDownLatch(1);
        private final CountDownLatch resigned = new CountDownLatch(1);
        private final CountDownLatch over = new CountDownLatch(1);

        @Override
        public void takeLeadership(CuratorFramework client) throws Exception {
            begun.countDown();
            try {
                resigned.await();
            } finally {
                over.countDown();
            }
        }
    }
}
