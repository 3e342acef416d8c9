import threading

from kazoo.client import KazooState


def test_lock_is_free_when_the_session_of_its_holder_expires(zookeeper, connect):
    holder, waiter = connect(), connect()
    lost = threading.Event()
    holder.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    holder.Lock("/lock").acquire()
    assert not waiter.Lock("/lock").acquire(blocking=False)

    zookeeper.tell(f"expire {holder.client_id[0]}")

    assert waiter.Lock("/lock").acquire(timeout=60)
    assert lost.wait(timeout=60)


def test_ephemeral_nodes_outlive_a_restart(zookeeper, connect):
    client = connect()
    session = client.client_id[0]
    client.create("/worker", b"me", ephemeral=True)

    zookeeper.tell("restart")

    data, stat = client.retry(client.get, "/worker")
    assert (data, stat.ephemeralOwner) == (b"me", session)
