import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** The double barriers that an actor is inside, by path, and barriers. */
final class Barriers {
    private final Map<String, DistributedDoubleBarrier> inside = new HashMap<>();

    String act(CuratorFramework client, String[] words) throws Exception {
        String path = words[2];
        switch (words[1]) {
            case "set-barrier":
                new DistributedBarrier(client, path).setBarrier();
                return "set";
            case "remove-barrier":
                new DistributedBarrier(client, path).removeBarrier();
                return "removed";
            case "wait-barrier":
                boolean open = new DistributedBarrier(client, path)
                        .waitOnBarrier(Long.parseLong(words[3]), TimeUnit.MILLISECONDS);
                return open ? "open" : "closed";
            case "enter":
                inside.put(path, new DistributedDoubleBarrier(client, path, Integer.parseInt(words[3])));
                inside.get(path).enter();
                return "inside";
            default:
                inside.remove(path).leave();
                return "outside";
        }
    }
}
