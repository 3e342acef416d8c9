"""Watches that fire once, and the recipes on them."""

import queue

from kazoo.recipe.cache import TreeCache, TreeEvent

from clients import client
from control import next_of, ok, until


class Events:
    """Keeps the events of one watcher."""

    def __init__(self):
        self.seen = queue.Queue()

    def __call__(self, event):
        self.seen.put(f"{event.type} {event.path}")

    def next(self):
        return next_of("an event", self.seen)


def flush(zk, events):
    """Returns the events up to now: events arrive in order."""
    last = Events()
    zk.create("/flush")
    zk.get("/flush", watch=last)
    zk.delete("/flush")
    last.next()
    return list(events.seen.queue)


def one_shot():
    zk, other, events = client(), client(), Events()
    zk.exists("/watched", watch=events)
    other.create("/watched")
    ok("watch for a node to come", events.next())
    zk.get("/watched", watch=events)
    other.set("/watched", b"1")
    other.set("/watched", b"2")
    ok("watch its data", events.next())
    zk.get_children("/watched", watch=events)
    other.create("/watched/child")
    ok("watch its children", events.next())
    zk.exists("/watched/child", watch=events)
    other.delete("/watched/child")
    ok("watch for a node to go", events.next())
    ok("each fires once", flush(zk, events))


def data_watch():
    zk, other, seen = client(), client(), queue.Queue()
    zk.DataWatch("/data-watch", func=lambda data, stat: seen.put(data))
    ok("data watch on a missing node", next_of("the first call", seen))
    steps = [(other.create, b"1"), (other.set, b"2"), (other.set, b"3")]
    for change, value in steps:
        change("/data-watch", value)
        ok("data watch", next_of("a change", seen))
    other.delete("/data-watch")
    ok("data watch on a deleted node", next_of("the end", seen))


def children_watch():
    zk, other, seen = client(), client(), queue.Queue()
    zk.create("/children-watch")
    zk.ChildrenWatch("/children-watch", func=lambda children: seen.put(sorted(children)))
    ok("children watch", next_of("the first call", seen))
    for child in "ab":
        other.create("/children-watch/" + child)
        ok("children watch", next_of("a new child", seen))
    other.delete("/children-watch/a")
    ok("children watch", next_of("a deleted child", seen))


def tree_cache():
    zk, other, seen = client(), client(), queue.Queue()
    other.create("/tree/a", b"1", makepath=True)
    cache = TreeCache(zk, "/tree")
    cache.listen(lambda event: seen.put(event))
    cache.start()
    until("the cache is filled", lambda: next_of("a change", seen).event_type == TreeEvent.INITIALIZED)
    ok("tree cache", cache.get_data("/tree/a").data, sorted(cache.get_children("/tree")))
    other.create("/tree/a/b", b"2")
    until("the new node is cached", lambda: cache.get_data("/tree/a/b") is not None)
    other.set("/tree/a", b"3")
    until("the new value is cached", lambda: cache.get_data("/tree/a").data == b"3")
    other.delete("/tree/a/b")
    until("the node has left the cache", lambda: not cache.get_children("/tree/a"))
    ok("tree cache follows", cache.get_data("/tree/a").data)
    cache.close()
