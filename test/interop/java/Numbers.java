import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;

/** The numbers and values of an actor. */
final class Numbers {
    private static final int TRIES = 3;
    private final Map<String, DistributedAtomicLong> atomics = new HashMap<>();

    String act(CuratorFramework client, String[] words) throws Exception {
        String kind = words[2];
        String path = words[3];
        String delta = words.length > 4 ? words[4] : "0";
        switch (kind) {
            case "atomic":
                return "number " + result(atomic(client, path).add(Long.parseLong(delta)));
            case "integer":
                return "number " + result(new DistributedAtomicInteger(client, path, new RetryNTimes(TRIES, 1))
                        .add(Integer.parseInt(delta)));
            case "count":
                return "number " + count(client, path, Integer.parseInt(delta));
            default:
                return "value " + value(client, path, delta);
        }
    }

    /** A number with the lock in whose queue the numbers of docent wait by default. */
    private DistributedAtomicLong atomic(CuratorFramework client, String path) {
        return atomics.computeIfAbsent(path, p -> new DistributedAtomicLong(client, p, new RetryNTimes(TRIES, 1),
                PromotedToLock.builder().lockPath(p + "-lock").retryPolicy(new RetryForever(1)).build()));
    }

    private static <T> T result(AtomicValue<T> value) {
        if (!value.succeeded()) {
            throw new IllegalStateException("not added");
        }
        return value.postValue();
    }

    private static int count(CuratorFramework client, String path, int delta) throws Exception {
        try (SharedCount count = new SharedCount(client, path, 0)) {
            count.start();
            VersionedValue<Integer> now = count.getVersionedValue();
            while (delta != 0 && !count.trySetCount(now, now.getValue() + delta)) {
                now = count.getVersionedValue();
            }
            return count.getCount();
        }
    }

    /** Appends to a value. */
    private static String value(CuratorFramework client, String path, String more) throws Exception {
        try (SharedValue value = new SharedValue(client, path, new byte[0])) {
            value.start();
            VersionedValue<byte[]> now = value.getVersionedValue();
            while (!value.trySetValue(now, (text(now.getValue()) + more).getBytes(StandardCharsets.UTF_8))) {
                now = value.getVersionedValue();
            }
            return text(value.getValue());
        }
    }

    private static String text(byte[] data) {
        return new String(data, StandardCharsets.UTF_8);
    }
}
