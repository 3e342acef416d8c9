"""Recipes that are no locks."""

import queue

from kazoo.recipe.partitioner import PartitionState

from clients import client
from control import Beside, check, equal, ok, until

ADDS = 10


def barriers():
    one, two = client(), client()
    barrier = one.Barrier("/barrier")
    barrier.create()
    ok("barrier that is set", two.Barrier("/barrier").wait(timeout=0))
    waiting = Beside(two.Barrier("/barrier").wait, 60)
    barrier.remove()
    ok("barrier that is removed", waiting.end())
    first, second = one.DoubleBarrier("/double", 2, "one"), two.DoubleBarrier("/double", 2, "two")
    entering = Beside(first.enter)
    until("the first has come", lambda: two.exists("/double") and two.get_children("/double"))
    check(not entering.done(), "one has passed a barrier for two")
    second.enter()
    entering.end()
    ok("double barrier entered", first.participating, second.participating)
    leaving = Beside(first.leave)
    second.leave()
    leaving.end()
    ok("double barrier left", one.get_children("/double"))


def counter():
    one, two = client(), client()

    def add(zk):
        number = zk.Counter("/counter")
        for _ in range(ADDS):
            number += 1
        return ADDS

    other = Beside(add, two)
    added = add(one) + other.end()
    equal("the counter", added, one.Counter("/counter").value)
    ok("counter", added)


def queues():
    one, two = client(), client()
    producer, consumer = one.Queue("/queue"), two.Queue("/queue")
    for item in (b"b", b"c"):
        producer.put(item)
    producer.put(b"a", priority=1)
    ok("queue", [consumer.get() for _ in range(4)], len(producer))
    locking(one.LockingQueue("/locking"), two.LockingQueue("/locking"))


def locking(first, second):
    first.put_all([b"a", b"b"])
    ok("locking queue", first.get(), second.get())
    ok("locking queue when it is consumed", first.consume(), second.release())
    ok("locking queue gives a released item again", first.get(timeout=60))
    waiting = Beside(second.get, 60)
    first.consume()
    first.put(b"c")
    ok("locking queue waits for an item", waiting.end(), second.consume())


def parties():
    one, two = client(), client()
    for name in ("Party", "ShallowParty"):
        first, second = (getattr(zk, name)("/" + name, identifier) for zk, identifier in ((one, "one"), (two, "two")))
        first.join()
        second.join()
        ok(name, sorted(first), len(second))
        second.leave()
        ok(name + " when one has left", sorted(first))


def partitioner():
    """Two clients partition a set, each on its own thread, because each waits for the other."""
    shares = queue.Queue()

    def take(zk, name):
        mine = zk.SetPartitioner("/partition", set=("a", "b", "c", "d"), identifier=name, time_boundary=0.2)
        until("the set is shared", lambda: settled(mine))
        shares.put((name, sorted(mine)))
        until("both have a share", lambda: shares.qsize() == 2)
        mine.finish()

    both = [Beside(take, client(), name) for name in ("one", "two")]
    for one in both:
        one.end()
    ok("partitions", sorted(shares.queue))


def settled(partition):
    """Does one step, and returns whether this client has the share of one in two."""
    if partition.state == PartitionState.RELEASE:
        partition.release_set()
    elif partition.state == PartitionState.ALLOCATING:
        partition.wait_for_acquire(1)
    return partition.acquired and len(list(partition)) == 2
