"""A program that uses Lock of kazoo: see the Go package peer."""

import logging
import math
import os
import sys
import time

from kazoo.client import KazooClient, KazooState

logging.disable(logging.CRITICAL)

PER_E = 500


class Peer:
    def __init__(self, servers, name, lease_ms):
        self.suspended = False
        self.many = []
        self.client = KazooClient(servers, timeout=int(lease_ms) / 1000)
        self.client.add_listener(self.listen)
        self.client.start(timeout=60)
        self.path = "/" + name
        self.lock = self.client.Lock(self.path)

    def listen(self, state):
        """The documentation says that a lock must not be relied on without a connection."""
        if state != KazooState.CONNECTED:
            self.suspended = True

    def acquire(self):
        self.suspended = False
        self.lock.acquire()
        return "held 0 %d" % time.time_ns()

    def look(self):
        return "valid" if self.lock.is_acquired and not self.suspended else "lost"

    def write(self):
        return "none"

    def release(self):
        began = time.time_ns()
        self.lock.release()
        return "released %d" % began

    def loop(self, ms):
        latencies, ops = {}, 0
        end = time.monotonic() + int(ms) / 1000
        while time.monotonic() < end:
            began = time.monotonic_ns()
            self.lock.acquire()
            self.lock.release()
            bucket = int(math.log(time.monotonic_ns() - began) * PER_E)
            latencies[bucket] = latencies.get(bucket, 0) + 1
            ops += 1
        return "looped ops=%d hist=%s" % (ops, ",".join("%d:%d" % pair for pair in sorted(latencies.items())))

    def acquire_many(self, n):
        began = time.monotonic_ns()
        for i in range(int(n)):
            lock = self.client.Lock("%s-%d" % (self.path, i))
            lock.acquire()
            self.many.append(lock)
        return "many %d" % (time.monotonic_ns() - began)

    def release_many(self):
        began = time.monotonic_ns()
        for lock in self.many:
            lock.release()
        self.many = []
        return "freed %d" % (time.monotonic_ns() - began)


def main():
    peer = Peer(*sys.argv[1:])
    verbs = {"acquire": peer.acquire, "look": peer.look, "write": peer.write, "release": peer.release,
             "loop": peer.loop, "many": peer.acquire_many, "none": peer.release_many}
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        try:
            answer = verbs[verb](*rest)
        except Exception as e:  # any error: the driver waits for an answer
            answer = "failed " + repr(e).replace("\n", " ")
        print(answer, flush=True)
    os._exit(0)


main()
