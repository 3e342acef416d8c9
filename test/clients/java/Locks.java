import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** Two contenders for each kind of lock. */
final class Locks {
    private static final int ROUNDS = 5;

    private Locks() {
    }

    /** Fails if more clients are inside than allowed. */
    static final class Room {
        private final int size;
        private final AtomicInteger inside = new AtomicInteger();

        Room(int size) {
            this.size = size;
        }

        /** Sends a read while inside, so that the others have time to enter if they can. */
        void visit(CuratorFramework client) throws Exception {
            Control.check(inside.incrementAndGet() <= size, "too many inside: " + inside);
            client.checkExists().forPath("/");
            client.checkExists().forPath("/");
            inside.decrementAndGet();
        }
    }

    static void mutexes() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        contend("InterProcessMutex", one, two, new InterProcessMutex(one, "/mutex"),
                new InterProcessMutex(two, "/mutex"), "/mutex");
        contend("InterProcessSemaphoreMutex", one, two, new InterProcessSemaphoreMutex(one, "/semaphore-mutex"),
                new InterProcessSemaphoreMutex(two, "/semaphore-mutex"), "/semaphore-mutex/leases");
        InterProcessMutex mutex = new InterProcessMutex(one, "/mutex");
        mutex.acquire();
        mutex.acquire();
        mutex.release();
        Control.check(mutex.isOwnedByCurrentThread(), "released once, acquired twice");
        Control.ok("InterProcessMutex is reentrant", mutex.getParticipantNodes().size());
        mutex.release();
    }

    static void multi() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        List<String> paths = List.of("/multi-a", "/multi-b");
        contend("InterProcessMultiLock", one, two, new InterProcessMultiLock(one, paths),
                new InterProcessMultiLock(two, paths), "/multi-a");
        InterProcessMutex half = new InterProcessMutex(two, "/multi-b");
        half.acquire();
        InterProcessLock both = new InterProcessMultiLock(one, paths);
        Control.ok("half of a multi lock is taken", both.acquire(0, TimeUnit.SECONDS));
        Control.until("the other half is free", () -> Nodes.children(one, "/multi-a").isEmpty());
        half.release();
    }

    /** Two contenders acquire one after the other, and then repeatedly. */
    private static void contend(String name, CuratorFramework one, CuratorFramework two, InterProcessLock first,
            InterProcessLock second, String queue) throws Exception {
        first.acquire();
        Control.ok(name + " when it is taken", second.acquire(0, TimeUnit.SECONDS));
        CompletableFuture<Boolean> waiting = Control.beside(() -> {
            second.acquire();
            boolean held = second.isAcquiredInThisProcess();
            second.release();
            return held;
        });
        Control.until("the second is in the queue", () -> Nodes.children(one, queue).size() == 2);
        Control.check(!second.isAcquiredInThisProcess(), name + ": both hold it");
        first.release();
        Control.ok(name + " when it is released", Control.end("the second", waiting));
        rounds(name, one, two, first, second);
        Control.ok(name + " leaves nothing", Nodes.children(one, queue));
    }

    private static void rounds(String name, CuratorFramework one, CuratorFramework two, InterProcessLock first,
            InterProcessLock second)
            throws Exception {
        Room room = new Room(1);
        CompletableFuture<Integer> other = Control.beside(() -> visits(second, two, room));
        int visits = visits(first, one, room);
        Control.ok(name + " under contention", visits + Control.end("the other contender", other));
    }

    private static int visits(InterProcessLock lock, CuratorFramework client, Room room) throws Exception {
        int visits = 0;
        for (; visits < ROUNDS; visits++) {
            lock.acquire();
            try {
                room.visit(client);
            } finally {
                lock.release();
            }
        }
        return visits;
    }

    static void readWrite() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        InterProcessReadWriteLock first = new InterProcessReadWriteLock(one, "/rw");
        InterProcessReadWriteLock second = new InterProcessReadWriteLock(two, "/rw");
        contend("write lock", one, two, first.writeLock(), second.writeLock(), "/rw");
        contend("write lock against readers", one, two, first.readLock(), second.writeLock(), "/rw");
        contend("read lock against a writer", one, two, first.writeLock(), second.readLock(), "/rw");
        first.readLock().acquire();
        Control.ok("two readers", second.readLock().acquire(0, TimeUnit.SECONDS));
        second.readLock().release();
        first.readLock().release();
        first.writeLock().acquire();
        first.readLock().acquire();
        first.writeLock().release();
        Control.ok("downgraded", "a reader may", second.readLock().acquire(0, TimeUnit.SECONDS),
                "a writer may", second.writeLock().acquire(0, TimeUnit.SECONDS));
    }

    static void semaphore() throws Exception {
        CuratorFramework one = Script.client();
        CuratorFramework two = Script.client();
        InterProcessSemaphoreV2 first = new InterProcessSemaphoreV2(one, "/semaphore", 2);
        InterProcessSemaphoreV2 second = new InterProcessSemaphoreV2(two, "/semaphore", 2);
        Lease a = first.acquire();
        Lease b = second.acquire();
        Control.ok("semaphore when it is full", first.acquire(0, TimeUnit.SECONDS), first.getParticipantNodes().size());
        CompletableFuture<Lease> waiting = Control.beside(first::acquire);
        Control.until("a third is in the queue", () -> Nodes.children(one, "/semaphore/leases").size() == 3);
        Control.check(!waiting.isDone(), "three hold a semaphore of two");
        second.returnLease(b);
        second.returnLease(Control.end("the third", waiting));
        first.returnLease(a);
        Room room = new Room(2);
        List<CompletableFuture<Integer>> visitors = Stream.of(first, second, first)
                .map(semaphore -> Control.beside(leases(semaphore, semaphore == first ? one : two, room))).toList();
        int visits = 0;
        for (CompletableFuture<Integer> visitor : visitors) {
            visits += Control.end("a contender", visitor);
        }
        Control.ok("semaphore under contention", visits, Nodes.children(one, "/semaphore/leases"));
    }

    private static Callable<Integer> leases(InterProcessSemaphoreV2 semaphore, CuratorFramework client, Room room) {
        return () -> {
            int visits = 0;
            for (; visits < ROUNDS; visits++) {
                try (Lease lease = semaphore.acquire()) {
                    Control.check(lease.getNodeName() != null, "a lease without a node");
                    room.visit(client);
                }
            }
            return visits;
        };
    }
}
