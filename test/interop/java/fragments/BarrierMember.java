import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.retry.RetryOneTime;

/** A member of a double barrier, which leaves when it reads a line. */
final class BarrierMember {
    private static final int PAUSE_MS = 100;

    private BarrierMember() {
    }

    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new RetryOneTime(PAUSE_MS))) {
            client.start();
            DistributedDoubleBarrier barrier =
                new DistributedDoubleBarrier(client, args[1], Integer.parseInt(args[2]));
            barrier.enter();
            System.out.println("entered");
            System.in.read();
            barrier.leave();
            System.out.println("left");
        }
    }
}
