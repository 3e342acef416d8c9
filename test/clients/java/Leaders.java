import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Two candidates. */
final class Leaders {
    private Leaders() {
    }

    static void latch() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        LeaderLatch first = new LeaderLatch(one, "/latch", "first");
        LeaderLatch second = new LeaderLatch(two, "/latch", "second");
        first.start();
        Control.until("the first leads", first::hasLeadership);
        second.start();
        Control.until("there are two", () -> first.getParticipants().size() == 2);
        List<String> names = first.getParticipants().stream().map(Participant::getId).sorted().toList();
        Control.ok("latch", names, "leader:", second.getLeader().getId(), "both:",
                first.hasLeadership() && second.hasLeadership());
        first.close();
        Control.until("the second leads", second::hasLeadership);
        Control.ok("latch when the leader has left", second.getLeader().getId(), second.getParticipants().size());
        second.close();
        Control.until("the latch leaves nothing", () -> Nodes.children(one, "/latch").isEmpty());
    }

    /** Leads until it may stop. */
    private static final class Candidate extends LeaderSelectorListenerAdapter {
        final CountDownLatch enough = new CountDownLatch(1);
        private final String name;
        private final BlockingQueue<String> terms;

        Candidate(String name, BlockingQueue<String> terms) {
            this.name = name;
            this.terms = terms;
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws Exception {
            terms.add(name);
            enough.await();
        }
    }

    static void selector() throws Exception {
        BlockingQueue<String> terms = new LinkedBlockingQueue<>();
        Candidate one = new Candidate("first", terms);
        Candidate two = new Candidate("second", terms);
        try (LeaderSelector first = new LeaderSelector(Script.client(), "/selector", one);
                LeaderSelector second = new LeaderSelector(Script.client(), "/selector", two)) {
            first.start();
            Control.ok("selector", Control.next("a leader", terms));
            second.start();
            Control.until("there are two", () -> first.getParticipants().size() == 2);
            Control.check(terms.isEmpty(), "two lead");
            one.enough.countDown();
            Control.ok("selector when the leader has left", Control.next("the next leader", terms));
            two.enough.countDown();
        }
    }
}
