import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.curator.RetryLoop;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListener;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Locker;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.SessionConnectionStateErrorPolicy;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** The Java fragments of docs/porting-from-curator.md. */
abstract class Fragments {
    private CuratorFramework client;
    private InterProcessMutex lock;
    private InterProcessReadWriteLock rw;
    private InterProcessSemaphoreV2 exports;
    private List<String> orders;
    private final ReentrantLock mutex = new ReentrantLock();
    private final Condition notEmpty = mutex.newCondition();

    abstract void work() throws Exception;

    abstract void write() throws Exception;

    abstract void read() throws Exception;

    abstract void process() throws Exception;

    abstract void lead();

    abstract void follow();

    abstract void note(Object what, Object why);

    // fragment start
    void program(String servers) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
            .connectString(servers)
            .sessionTimeoutMs(40_000)
            .retryPolicy(new ExponentialBackoffRetry(1000, 3))
            .build();
        client.start();
        try {
            if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
                throw new IOException("no server");
            }

            InterProcessMutex lock =
                new InterProcessMutex(client, "/locks/orders");
            if (!lock.acquire(10, TimeUnit.SECONDS)) {
                return; // others were ahead
            }
            try {
                process();
            } finally {
                lock.release();
            }
        } finally {
            client.close();
        }
    }
    // end

    // fragment reentry
    void rebuild() throws Exception {
        lock.acquire();
        try {
            repair();
        } finally {
            lock.release();
        }
    }

    void repair() throws Exception {
        lock.acquire(); // the thread has it: at once
        try {
            work();
        } finally {
            lock.release();
        }
    }
    // end

    // fragment loss
    void drain(List<Callable<Void>> steps) throws Exception {
        lock.acquire();
        try {
            for (Callable<Void> step : steps) {
                // isAcquiredInThisProcess() is true,
                // whatever became of the session
                step.call();
            }
        } finally {
            lock.release(); // silent if the node is gone
        }
    }
    // end

    // fragment interrupt
    boolean impatient() throws Exception {
        // InterruptedException: Thread.interrupt
        if (!lock.acquire(200, TimeUnit.MILLISECONDS)) {
            return false; // others were ahead
        }
        try {
            work();
        } finally {
            lock.release();
        }
        return true;
    }
    // end

    void states() {
        // fragment states
        client.getConnectionStateListenable().addListener(
            (client, state) -> {
                if (state == ConnectionState.SUSPENDED) {
                    pause(); // the lock may go soon
                } else if (state == ConnectionState.LOST) {
                    abort(); // it has gone
                }
            });
        // end
    }

    abstract void pause();

    abstract void abort();

    // fragment outcomes
    void publish(String path, byte[] data) throws Exception {
        try {
            client.setData().forPath(path, data);
        } catch (KeeperException.ConnectionLossException
                | KeeperException.SessionExpiredException e) {
            throw new IOException("may have been written", e);
        }
    }
    // end

    void builder(String servers, ACLProvider onlyFor) {
        // fragment builder
        CuratorFramework client = CuratorFrameworkFactory.builder()
            .connectString(servers)
            .namespace("shop")
            .sessionTimeoutMs(40_000)
            .connectionTimeoutMs(5_000)
            .retryPolicy(new ExponentialBackoffRetry(1000, 3))
            .authorization("digest", "orders:secret".getBytes())
            .aclProvider(onlyFor)
            .connectionStateErrorPolicy(
                new SessionConnectionStateErrorPolicy())
            .build();
        client.start();
        // end
    }

    void operations(byte[] data, byte[] newer) throws Exception {
        // fragment operations
        String path = client.create()
            .creatingParentContainersIfNeeded()
            .withProtection()
            .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
            .forPath("/jobs/job-", data);
        Stat stat = new Stat();
        byte[] read = client.getData()
            .storingStatIn(stat).forPath(path);
        client.setData()
            .withVersion(stat.getVersion()).forPath(path, newer);
        List<String> names = client.getChildren().forPath("/jobs");
        client.delete().guaranteed().forPath(path);
        boolean gone = client.checkExists().forPath(path) == null;
        // end
        note(read, names);
        note(gone, null);
    }

    // fragment create-or-set
    void put(String path, byte[] data) throws Exception {
        client.create()
            .orSetData()
            .creatingParentContainersIfNeeded()
            .forPath(path, data);
    }
    // end

    // fragment parents
    void createStaying(String path, byte[] data) throws Exception {
        client.create()
            .creatingParentsIfNeeded()
            .forPath(path, data);
    }
    // end

    // fragment delete-all
    void deleteAll(String path) throws Exception {
        client.delete()
            .quietly()
            .deletingChildrenIfNeeded()
            .forPath(path);
    }
    // end

    void transaction(byte[] data, int old) throws Exception {
        // fragment transaction
        List<CuratorTransactionResult> results =
            client.transaction().forOperations(
                client.transactionOp().check()
                    .withVersion(old).forPath("/config"),
                client.transactionOp().setData()
                    .forPath("/config", data),
                client.transactionOp().create()
                    .withMode(CreateMode.PERSISTENT_SEQUENTIAL)
                    .forPath("/history-", data),
                client.transactionOp().delete().forPath("/draft"));
        String entry = results.get(2).getResultPath();
        // end
        note(entry, null);
    }

    // fragment watch
    void follow(String path) throws Exception {
        byte[] data = client.getData()
            .usingWatcher((CuratorWatcher) event -> {
                // once: read and watch again
            })
            .forPath(path);
        changed(data);
    }
    // end

    abstract void changed(byte[] data);

    void background() throws Exception {
        // fragment background
        client.create()
            .inBackground((client, event) ->
                note(event.getPath(), event.getResultCode()))
            .forPath("/report");
        // end
    }

    void backgroundOrder() throws Exception {
        // fragment background-order
        client.create().inBackground().forPath("/report");
        client.create().inBackground().forPath("/report/page");
        // end
    }

    void sharedCountCopy(SharedCount limit) {
        // fragment count-copy
        int now = limit.getCount(); // a copy in memory
        // end
        note(now, null);
    }

    void initialize(DistributedAtomicLong orders) throws Exception {
        // fragment initialize
        boolean created = orders.initialize(7L);
        // end
        note(created, null);
    }

    void retryLoop() throws Exception {
        // fragment retry-loop
        byte[] data = RetryLoop.callWithRetry(
            client.getZookeeperClient(),
            () -> client.getZookeeperClient().getZooKeeper()
                .getData("/config", false, null));
        // end
        note(data, null);
    }

    @SuppressWarnings("try")
    // fragment locker
    void locked() throws Exception {
        // TimeoutException after ten seconds
        try (Locker held = new Locker(lock, 10, TimeUnit.SECONDS)) {
            work();
        }
    }
    // end

    // fragment revocable
    void yielding(BlockingQueue<Callable<Void>> jobs) throws Exception {
        Thread holder = Thread.currentThread();
        // before each acquire: a release forgets it
        lock.makeRevocable(forLock -> holder.interrupt());
        lock.acquire();
        try {
            while (true) {
                jobs.take().call();
            }
        } catch (InterruptedException e) {
            // another client asks for it: give it back
        } finally {
            lock.release();
        }
    }
    // end

    // fragment revoke
    void takeOver() throws Exception {
        Collection<String> line = lock.getParticipantNodes();
        if (!line.isEmpty()) { // the holder first
            Revoker.attemptRevoke(client, line.iterator().next());
        }
        lock.acquire(); // others may enter the queue before
    }
    // end

    // fragment downgrade
    void refresh() throws Exception {
        rw.writeLock().acquire();
        try {
            write();
            rw.readLock().acquire(); // at once
        } finally {
            rw.writeLock().release(); // readers come in
        }
        try {
            read();
        } finally {
            rw.readLock().release();
        }
    }
    // end

    // fragment semaphore
    void export() throws Exception {
        InterProcessSemaphoreV2 exports =
            new InterProcessSemaphoreV2(client, "/limits/exports", 5);
        Lease lease = exports.acquire();
        try {
            work();
        } finally {
            exports.returnLease(lease);
        }
    }
    // end

    // fragment leases
    void exportAll() throws Exception {
        Collection<Lease> three =
            exports.acquire(3, 10, TimeUnit.SECONDS);
        if (three == null) {
            return; // fewer were free for ten seconds
        }
        try {
            work();
        } finally {
            exports.returnAll(three);
        }
    }
    // end

    void sharedLimit() throws Exception {
        // fragment shared-limit
        SharedCount limit = new SharedCount(client, "/config/exports", 5);
        limit.start();
        InterProcessSemaphoreV2 exports =
            new InterProcessSemaphoreV2(client, "/limits/exports", limit);
        limit.setCount(8);
        // end
        note(exports, null);
    }

    // fragment semaphore-mutex
    void once(ExecutorService pool) throws Exception {
        InterProcessLock lock =
            new InterProcessSemaphoreMutex(client, "/locks/report");
        lock.acquire();
        pool.submit(() -> {
            try {
                work();
            } finally {
                lock.release(); // any thread may
            }
            return null;
        }).get();
    }
    // end

    // fragment multilock
    void transfer() throws Exception {
        InterProcessLock both = new InterProcessMultiLock(
            client, List.of("/locks/stock", "/locks/till"));
        // ten seconds for each of them
        if (!both.acquire(10, TimeUnit.SECONDS)) {
            throw new IOException("busy");
        }
        try {
            work();
        } finally {
            both.release();
        }
    }
    // end

    // fragment multilock-of
    void moveStock() throws Exception {
        InterProcessLock both = new InterProcessMultiLock(
            List.of(lock, rw.readLock())); // in this order
        both.acquire();
        try {
            work();
        } finally {
            both.release();
        }
    }
    // end

    // fragment latch
    void serve() throws Exception {
        LeaderLatch latch = new LeaderLatch(client, "/service/leader",
            "host-3", LeaderLatch.CloseMode.NOTIFY_LEADER);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                lead();
            }

            @Override
            public void notLeader() {
                follow();
            }
        });
        latch.start();
        try {
            latch.await();
            work(); // ask hasLeadership() now and then
        } finally {
            latch.close();
        }
    }
    // end

    abstract void reconcile() throws Exception;

    void selector() {
        // fragment selector
        LeaderSelector selector = new LeaderSelector(client,
            "/service/leader", new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client)
                        throws Exception {
                    reconcile(); // is interrupted if SUSPENDED
                }
            });
        selector.setId("host-3");
        selector.autoRequeue();
        selector.start();
        // end
    }

    void oneTerm(LeaderSelectorListener takeLeadership) {
        // fragment one-term
        LeaderSelector selector = new LeaderSelector(
            client, "/service/leader", takeLeadership);
        selector.start(); // leads once; again: requeue()
        // end
    }

    void participants(LeaderSelector selector) throws Exception {
        // fragment participants
        for (Participant p : selector.getParticipants()) {
            note(p.getId(), p.isLeader());
        }
        Participant now = selector.getLeader();
        // end
        note(now, null);
    }

    void counter() throws Exception {
        // fragment counter
        DistributedAtomicLong orders = new DistributedAtomicLong(
            client, "/counters/orders", new RetryNTimes(3, 10),
            PromotedToLock.builder().lockPath("/locks/orders").build());
        AtomicValue<Long> next = orders.increment();
        if (!next.succeeded()) {
            throw new IOException("not incremented");
        }
        System.out.println(next.postValue());
        // end
    }

    void sharedCount() throws Exception {
        // fragment shared-count
        SharedCount limit = new SharedCount(client, "/config/limit", 5);
        limit.start();
        VersionedValue<Integer> now = limit.getVersionedValue();
        boolean wrote = limit.trySetCount(now, now.getValue() + 1);
        System.out.println(wrote + " " + limit.getCount());
        // end
    }

    void barriers() throws Exception {
        // fragment barrier
        DistributedBarrier barrier =
            new DistributedBarrier(client, "/barriers/start");
        barrier.setBarrier();
        barrier.waitOnBarrier(); // in other processes
        barrier.removeBarrier();
        // end
    }

    // fragment condition
    String take(long time, TimeUnit unit) throws InterruptedException {
        long left = unit.toNanos(time);
        mutex.lock();
        try {
            while (orders.isEmpty()) {
                if (left <= 0) {
                    return null;
                }
                left = notEmpty.awaitNanos(left);
            }
            return orders.remove(0);
        } finally {
            mutex.unlock();
        }
    }
    // end

    // fragment condition-signal
    void put(String order) {
        mutex.lock();
        try {
            orders.add(order);
            notEmpty.signal();
        } finally {
            mutex.unlock();
        }
    }
    // end

    void doubleBarrier() throws Exception {
        // fragment double-barrier
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(
            client, "/barriers/round-7", 5);
        barrier.enter();
        work();
        barrier.leave();
        // end
    }

    // fragment persistent-node
    PersistentNode register(String address) throws Exception {
        PersistentNode node =
            new PersistentNode(client, CreateMode.EPHEMERAL, false,
                "/services/host-3", address.getBytes());
        node.start();
        node.waitForInitialCreate(10, TimeUnit.SECONDS);
        return node;
    }
    // end

    void membership() {
        // fragment membership
        GroupMember member =
            new GroupMember(client, "/group", "host-3", new byte[0]);
        member.start();
        note(member.getCurrentMembers().keySet(), null);
        // end
        member.close();
    }

    // fragment token
    static final class TokenMutex extends InterProcessMutex {
        private final CuratorFramework client;

        TokenMutex(CuratorFramework client, String path) {
            super(client, path);
            this.client = client;
        }

        long token() throws Exception { // while it is held
            Stat stat = client.checkExists().forPath(getLockPath());
            if (stat == null) {
                throw new IllegalStateException("the lock is lost");
            }
            return stat.getCzxid();
        }
    }
    // end
}
