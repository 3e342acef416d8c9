import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** Recipes that are no locks. */
final class Recipes {
    private static final int ADDS = 10;

    private Recipes() {
    }

    static void counters() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        CompletableFuture<Integer> other = Control.beside(() -> add(two));
        int added = add(one) + Control.end("the other counter", other);
        DistributedAtomicLong counter = new DistributedAtomicLong(one, "/atomic", new RetryNTimes(3, 10));
        Control.equal("the counter", (long) added, counter.get().postValue());
        Control.ok("atomic long", added);
        shared(one, two);
    }

    private static int add(CuratorFramework client) throws Exception {
        DistributedAtomicLong counter = new DistributedAtomicLong(client, "/atomic", new RetryNTimes(1000, 1));
        for (int i = 0; i < ADDS; i++) {
            AtomicValue<Long> value = counter.increment();
            Control.check(value.succeeded(), "not incremented");
        }
        return ADDS;
    }

    private static void shared(CuratorFramework one, CuratorFramework two) throws Exception {
        BlockingQueue<Integer> counts = new LinkedBlockingQueue<>();
        try (SharedCount first = new SharedCount(one, "/shared", 1);
                SharedCount second = new SharedCount(two, "/shared", 1)) {
            second.addListener(new SharedCountListener() {
                @Override
                public void countHasChanged(SharedCountReader reader, int count) {
                    counts.add(count);
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {
                    // The check does not need this.
                }
            });
            first.start();
            second.start();
            first.setCount(5);
            Control.ok("shared count", Control.next("the count", counts), second.getCount());
        }
    }

    static void barriers() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        DistributedBarrier barrier = new DistributedBarrier(one, "/barrier");
        barrier.setBarrier();
        Control.ok("barrier that is set", new DistributedBarrier(two, "/barrier").waitOnBarrier(0, TimeUnit.SECONDS));
        CompletableFuture<Boolean> waiting = Control.beside(
                () -> new DistributedBarrier(two, "/barrier").waitOnBarrier(1, TimeUnit.MINUTES));
        barrier.removeBarrier();
        Control.ok("barrier that is removed", Control.end("the barrier", waiting));
        DistributedDoubleBarrier first = new DistributedDoubleBarrier(one, "/double", 2);
        DistributedDoubleBarrier second = new DistributedDoubleBarrier(two, "/double", 2);
        CompletableFuture<Boolean> entering = Control.beside(() -> first.enter(1, TimeUnit.MINUTES));
        Control.until("the first has come", () -> !Nodes.children(two, "/double").isEmpty());
        Control.check(!entering.isDone(), "one has passed a barrier for two");
        Control.ok("double barrier entered", second.enter(1, TimeUnit.MINUTES), Control.end("the first", entering));
        CompletableFuture<Boolean> leaving = Control.beside(() -> first.leave(1, TimeUnit.MINUTES));
        Control.ok("double barrier left", second.leave(1, TimeUnit.MINUTES), Control.end("the first", leaving));
    }

    static void queue() throws Exception {
        SimpleDistributedQueue producer = new SimpleDistributedQueue(Script.client(), "/queue");
        SimpleDistributedQueue consumer = new SimpleDistributedQueue(Script.client(), "/queue");
        CompletableFuture<byte[]> taken = Control.beside(consumer::take);
        producer.offer(Nodes.bytes("a"));
        List<String> items = new ArrayList<>(List.of(new String(Control.end("the first item", taken))));
        for (String item : List.of("b", "c", "d")) {
            producer.offer(Nodes.bytes(item));
        }
        for (byte[] item; (item = consumer.poll()) != null; ) {
            items.add(new String(item));
        }
        Control.ok("queue", items);
    }
}
