import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** The kinds of locks, by their names in the requests. */
final class Locks {
    /** Only the two sides of one read-write lock object can be held together. */
    private final Map<String, InterProcessReadWriteLock> pairs = new HashMap<>();

    /** Takes "... make name kind path more". */
    Contended make(CuratorFramework client, String[] words) throws Exception {
        String path = words[4];
        switch (words[3]) {
            case "mutex":
                return new Mutex(new InterProcessMutex(client, path));
            case "read":
                return new Mutex(pair(client, path).readLock());
            case "write":
                return new Mutex(pair(client, path).writeLock());
            case "semaphore-mutex":
                return new Plain(new InterProcessSemaphoreMutex(client, path));
            case "multi":
                return new Plain(new InterProcessMultiLock(client, Arrays.asList(path.split(","))));
            case "semaphore":
                return new Semaphore(new InterProcessSemaphoreV2(client, path, Integer.parseInt(words[5])));
            case "shared-semaphore":
                SharedCount limit = new SharedCount(client, words[5], 1);
                limit.start();
                return new Semaphore(new InterProcessSemaphoreV2(client, path, limit));
            case "latch":
                return new Latch(client, path, words[5]);
            case "selector":
                return new Selector(client, path, words[5]);
            default:
                throw new IllegalArgumentException(words[3]);
        }
    }

    private InterProcessReadWriteLock pair(CuratorFramework client, String path) {
        return pairs.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
    }

    private static class Plain implements Contended {
        private final InterProcessLock lock;

        Plain(InterProcessLock lock) {
            this.lock = lock;
        }

        @Override
        public boolean acquire(long ms) throws Exception {
            if (ms >= 0) {
                return lock.acquire(ms, TimeUnit.MILLISECONDS);
            }
            lock.acquire();
            return true;
        }

        @Override
        public void release() throws Exception {
            lock.release();
        }
    }

    private static final class Mutex extends Plain {
        private final InterProcessMutex lock;

        Mutex(InterProcessMutex lock) {
            super(lock);
            this.lock = lock;
        }

        @Override
        public Collection<String> participants() throws Exception {
            return lock.getParticipantNodes();
        }

        @Override
        public void revocable(Runnable asked) {
            lock.makeRevocable(lock -> asked.run(), SAME_THREAD);
        }
    }

    private static final class Semaphore implements Contended {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        Semaphore(InterProcessSemaphoreV2 semaphore) {
            this.semaphore = semaphore;
        }

        @Override
        public boolean acquire(long ms) throws Exception {
            lease = ms < 0 ? semaphore.acquire() : semaphore.acquire(ms, TimeUnit.MILLISECONDS);
            return lease != null;
        }

        @Override
        public void release() throws Exception {
            lease.close();
        }

        @Override
        public Collection<String> participants() throws Exception {
            return semaphore.getParticipantNodes();
        }
    }
}
