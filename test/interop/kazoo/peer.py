"""A process that uses kazoo as requested: see the Go package beside this folder."""

import logging
import os
import queue
import socket
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.counter import Counter
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.recipe.party import Party
from kazoo.retry import KazooRetry

logging.disable(logging.CRITICAL)

SERVERS, SESSION_MS, RESOURCE = sys.argv[1], int(sys.argv[2]), sys.argv[3]

speaking = threading.Lock()


def say(line):
    """Print one line. Any thread may call it."""
    with speaking:
        print(line, flush=True)


class CuratorMutex(Lock):
    """A lock with Curator's names."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorRead(Lock):
    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class CuratorWrite(Lock):
    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


def stock(kind):
    """A lock of kazoo."""
    return lambda client, path: kind(client, path, "kazoo")


def aware(kind, *patterns):
    """A lock with kazoo's names that also knows the nodes of others."""
    return lambda client, path: kind(client, path, "kazoo", extra_lock_patterns=patterns)


KINDS = {
    "mutex": stock(Lock),
    "read": stock(ReadLock),
    "write": stock(WriteLock),
    "aware-mutex": aware(Lock, "-lock-"),
    "aware-read": aware(ReadLock, "__WRIT__"),
    "aware-write": aware(WriteLock, "__WRIT__", "__READ__"),
    "curator-mutex": stock(CuratorMutex),
    "curator-read": stock(CuratorRead),
    "curator-write": stock(CuratorWrite),
    "selector": lambda client, path, name: Lock(client, path, name),  # an Election is a Lock whose holder leads
}


class Resource:
    """The resource that the locks protect. It checks by itself which users are in it together."""

    def __init__(self, name, role):
        host, port = RESOURCE.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("rw", newline="\n")
        self.ask("%s %s kazoo" % (name, role))

    def ask(self, line):
        self.lines.write(line + "\n")
        self.lines.flush()
        answer = self.lines.readline()
        if not answer:
            raise IOError("the resource has closed the connection")
        return answer.strip()

    def enter(self):
        """Enter, and return whether the resource has enough."""
        return self.ask("enter") == "enough"

    def leave(self):
        self.ask("leave")

    def close(self):
        self.lines.close()
        self.socket.close()


class Actor(threading.Thread):
    """A thread with a client of its own, which handles one request after the other."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.label = name
        self.requests = queue.Queue()
        self.locks = {}
        self.parties = {}
        self.barriers = {}
        self.client = None
        self.start()

    def run(self):
        while True:
            words = self.requests.get()
            try:
                answer = self.act(words)
            except Exception as e:  # any error: the test waits for an answer
                answer = "failed %r" % e
            say("%s %s" % (self.label, answer.replace("\n", " ")))

    def act(self, words):
        if self.client is None:
            forever = KazooRetry(max_tries=-1, delay=0.1, max_delay=1)
            self.client = KazooClient(SERVERS, timeout=SESSION_MS / 1000, connection_retry=forever,
                                      command_retry=forever)
            self.client.start(timeout=60)
        verb, rest = words[1], words[2:]
        return getattr(self, verb.replace("-", "_"))(*rest)

    def make(self, name, kind, path, *rest):
        self.locks[name] = KINDS[kind](self.client, path, *rest)
        return "made"

    def acquire(self, name, ms):
        return "held" if self.take(self.locks[name], int(ms)) else "busy"

    @staticmethod
    def take(lock, ms):
        try:
            if ms == 0:
                return lock.acquire(blocking=False)
            return lock.acquire(timeout=ms / 1000 if ms > 0 else None)
        except LockTimeout:
            return False

    def release(self, name):
        return "released" if self.locks[name].release() else "not held"

    def participants(self, name):
        return " ".join(self.locks[name].contenders())

    def work(self, name, resource, role):
        """Acquire and release until the resource has enough."""
        uses, lock, turns, enough = Resource(resource, role), self.locks[name], 0, False
        while not enough:
            self.take(lock, -1)
            enough = uses.enter()
            uses.leave()
            lock.release()
            turns += 1
        uses.close()
        return "worked %d" % turns

    def join(self, path, name, _):
        self.parties[path] = Party(self.client, path, name)
        self.parties[path].join()
        return "joined"

    def members(self, path):
        return " ".join(["members"] + sorted(name + "=" for name in self.parties[path]))

    def leave(self, path):
        return "left" if self.parties.pop(path).leave() else "not there"

    def leave_shape(self, kind, path):
        """Leave the nodes of a recipe as they are while it is in use."""
        client = self.client
        {
            "semaphore": lambda: client.Semaphore(path, "kazoo", max_leases=2).acquire(),
            "barrier": lambda: client.Barrier(path).create(),
            "double-barrier": lambda: client.DoubleBarrier(path, 1, "kazoo").enter(),
            "counter": lambda: client.Counter(path).__add__(7),
            "shallow-party": lambda: client.ShallowParty(path, "kazoo").join(),
        }[kind]()
        return "left"

    def add(self, kind, node, delta):
        """Add to a number."""
        number = Counter(self.client, node, support_curator=kind == "count")
        number += int(delta)
        return "number %d" % number.post_value

    def set_barrier(self, path):
        Barrier(self.client, path).create()
        return "set"

    def remove_barrier(self, path):
        Barrier(self.client, path).remove()
        return "removed"

    def wait_barrier(self, path, ms):
        return "open" if Barrier(self.client, path).wait(int(ms) / 1000) else "closed"

    def enter(self, path, n):
        self.barriers[path] = DoubleBarrier(self.client, path, int(n))
        self.barriers[path].enter()
        return "inside"

    def exit(self, path):
        self.barriers.pop(path).leave()
        return "outside"

    def limit(self, node, limit):
        """Set a SharedCount of Curator."""
        count = Counter(self.client, node, default=int(limit), support_curator=True)
        count += int(limit) - count.value
        return "set"


def main():
    say("ready")
    actors = {}
    for line in sys.stdin:
        words = line.split()
        if words[0] not in actors:
            actors[words[0]] = Actor(words[0])
        actors[words[0]].requests.put(words)
    for actor in actors.values():
        if actor.client is not None:
            actor.client.stop()
    os._exit(0)


main()
