import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;

/** A lock of any kind, for one thread. */
interface Lock {
    int PERMITS = 10;
    int MANY = 10;
    int TRIES = 3;

    void acquire() throws Exception;

    void release() throws Exception;

    static Lock make(CuratorFramework client, String kind, String path) {
        switch (kind) {
            case "mutex":
            case "handoff":
                return of(new InterProcessMutex(client, path));
            case "read":
                return of(new InterProcessReadWriteLock(client, path).readLock());
            case "write":
                return of(new InterProcessReadWriteLock(client, path).writeLock());
            case "semaphore-mutex":
                return of(new InterProcessSemaphoreMutex(client, path));
            case "semaphore":
                return of(new InterProcessSemaphoreV2(client, path, PERMITS));
            case "multi":
                List<String> paths = new ArrayList<>();
                for (int i = 0; i < MANY; i++) {
                    paths.add(path + "/" + i);
                }
                return of(new InterProcessMultiLock(client, paths));
            case "counter":
                return of(new DistributedAtomicLong(client, path, new RetryNTimes(TRIES, 1), PromotedToLock.builder()
                    .lockPath(path + "-lock").retryPolicy(new RetryForever(1)).build()));
            default:
                throw new UnsupportedOperationException();
        }
    }

    private static Lock of(InterProcessLock lock) {
        return new Lock() {
            @Override
            public void acquire() throws Exception {
                lock.acquire();
            }

            @Override
            public void release() throws Exception {
                lock.release();
            }
        };
    }

    /** To acquire is to add one. */
    private static Lock of(DistributedAtomicLong number) {
        return new Lock() {
            @Override
            public void acquire() throws Exception {
                if (!number.increment().succeeded()) {
                    throw new IllegalStateException("not added");
                }
            }

            @Override
            public void release() {
            }
        };
    }

    private static Lock of(InterProcessSemaphoreV2 semaphore) {
        return new Lock() {
            private Lease lease;

            @Override
            public void acquire() throws Exception {
                lease = semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.returnLease(lease);
            }
        };
    }
}
