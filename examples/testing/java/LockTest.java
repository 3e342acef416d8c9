import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

final class LockTest {
    @RegisterExtension
    static final ZooKeeper zookeeper = new ZooKeeper("-servers", "3");

    private final List<CuratorFramework> clients = new ArrayList<>();

    @AfterEach
    void closeClients() {
        clients.forEach(CuratorFramework::close);
    }

    @Test
    void lockIsFreeWhenTheSessionOfItsHolderExpires() throws Exception {
        CuratorFramework holder = connect(), waiter = connect();
        CountDownLatch lost = new CountDownLatch(1);
        holder.getConnectionStateListenable().addListener((client, state) -> {
            if (state == ConnectionState.LOST) {
                lost.countDown();
            }
        });
        new InterProcessMutex(holder, "/lock").acquire();
        InterProcessMutex lock = new InterProcessMutex(waiter, "/lock");
        assertFalse(lock.acquire(0, TimeUnit.SECONDS));

        zookeeper.tell("expire " + session(holder));

        assertTrue(lock.acquire(60, TimeUnit.SECONDS));
        assertTrue(lost.await(60, TimeUnit.SECONDS));
    }

    @Test
    void ephemeralNodesOutliveARestart() throws Exception {
        CuratorFramework client = connect();
        long session = session(client);
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/worker");

        zookeeper.tell("restart");

        assertEquals(session, client.checkExists().forPath("/worker").getEphemeralOwner());
    }

    private CuratorFramework connect() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            zookeeper.connectString(), 10_000, 10_000, new RetryForever(100));
        clients.add(client);
        client.start();
        client.blockUntilConnected();
        return client;
    }

    private static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }
}
