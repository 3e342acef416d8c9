"""Two contenders for each kind of lock."""

import datetime
import queue
import threading

from clients import client
from control import Beside, check, next_of, ok, until

ROUNDS = 5


class Room:
    """Fails if more clients are inside than allowed."""

    def __init__(self, size):
        self._size, self._inside, self._guard = size, 0, threading.Lock()

    def visit(self, zk):
        """Sends a read while inside, so that the others have time to enter if they can."""
        with self._guard:
            self._inside += 1
            check(self._inside <= self._size, f"{self._inside} inside")
        zk.exists("/")
        zk.exists("/")
        with self._guard:
            self._inside -= 1


def contend(name, first, second, one, two):
    """Two contenders acquire one after the other, and then repeatedly."""
    hand_over(name, first, second)
    room = Room(1)
    other = Beside(visits, second, two, room)
    ok(name + " under contention", visits(first, one, room) + other.end())
    ok(name + " leaves nothing", one.get_children(first.path))


def hand_over(name, first, second):
    """The second contender acquires after the first has released."""
    first.acquire()
    ok(name + " when it is taken", second.acquire(blocking=False))
    waiting = Beside(second.acquire)
    until("the second is in the queue", lambda: sorted(first.contenders()) == ["one", "two"])
    check(not second.is_acquired, f"{name}: both hold it")
    first.release()
    ok(name + " when it is released", waiting.end(), second.contenders())
    second.release()


def visits(lock, zk, room):
    for _ in range(ROUNDS):
        with lock:
            room.visit(zk)
    return ROUNDS


def lock():
    one, two = client(), client()
    contend("lock", one.Lock("/lock", "one"), two.Lock("/lock", "two"), one, two)


def read_write():
    one, two = client(), client()
    contend("write lock", one.WriteLock("/rw", "one"), two.WriteLock("/rw", "two"), one, two)
    # Readers and writers that contend repeatedly can deadlock in this version of kazoo, with any
    # server.
    hand_over("write lock against readers", one.ReadLock("/rw", "one"), two.WriteLock("/rw", "two"))
    hand_over("read lock against a writer", one.WriteLock("/rw", "one"), two.ReadLock("/rw", "two"))
    first, second = one.ReadLock("/rw", "one"), two.ReadLock("/rw", "two")
    ok("two readers", first.acquire(), second.acquire(blocking=False))
    first.release()
    second.release()


def semaphore():
    one, two = client(), client()
    first, second, third = (zk.Semaphore("/semaphore", name, max_leases=2)
                            for zk, name in ((one, "one"), (two, "two"), (two, "three")))
    ok("semaphore", first.acquire(), second.acquire(), sorted(first.lease_holders()))
    ok("semaphore when it is full", third.acquire(blocking=False))
    waiting = Beside(third.acquire)
    until("the third waits", lambda: one.get_children("/semaphore-__lock__"))
    check(not third.is_acquired, "three hold a semaphore of two")
    first.release()
    ok("semaphore when one is released", waiting.end(), sorted(second.lease_holders()))
    second.release()
    third.release()
    room = Room(2)
    visitors = [Beside(visits, s, zk, room) for s, zk in ((first, one), (second, two), (third, two))]
    ok("semaphore under contention", sum(visitor.end() for visitor in visitors))


def election():
    one, two = client(), client()
    terms, enough = queue.Queue(), threading.Event()

    def lead(name):
        terms.put(name)
        check(enough.wait(60), "led for too long")

    first, second = one.Election("/election", "one"), two.Election("/election", "two")
    leading = Beside(first.run, lead, "one")
    ok("election", next_of("a leader", terms))
    waiting = Beside(second.run, lead, "two")
    until("there are two", lambda: first.contenders() == ["one", "two"])
    check(terms.empty(), "two lead")
    enough.set()
    ok("election when the leader has left", next_of("the next leader", terms))
    leading.end()
    waiting.end()


def lease():
    one, two = client(), client()
    hour = datetime.timedelta(hours=1)
    ok("lease", bool(one.NonBlockingLease("/lease", hour, identifier="one")))
    ok("lease when it is taken", bool(two.NonBlockingLease("/lease", hour, identifier="two")))
    ok("lease renewed", bool(one.NonBlockingLease("/lease", hour, identifier="one")))
    several = [bool(zk.MultiNonBlockingLease(2, "/leases", hour, identifier=str(n)))
               for n, zk in enumerate((one, two, two))]
    ok("two leases for three", several)
