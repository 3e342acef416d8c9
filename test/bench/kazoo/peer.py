"""A process that measures kazoo as requested: see the Go package peer."""

import logging
import math
import os
import platform
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.version import __version__

logging.disable(logging.CRITICAL)

PER_E = 500
PERMITS = 10
MIX = 10
SESSION = 30

KINDS = {
    "mutex": lambda client, path: Lock(client, path),
    "read": lambda client, path: ReadLock(client, path),
    "write": lambda client, path: WriteLock(client, path),
    "semaphore": lambda client, path: Semaphore(client, path, max_leases=PERMITS),
}


class Unsupported(Exception):
    """Kazoo does not support the job."""


def make(client, kind, path):
    if kind not in KINDS:
        raise Unsupported
    return KINDS[kind](client, path)


class Histogram:
    """Counts of durations, in the buckets of package hist. For one thread."""

    def __init__(self):
        self.counts = {}

    def record(self, nanos):
        bucket = int(math.log(max(nanos, 1)) * PER_E)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1

    def merge(self, other):
        for bucket, n in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + n

    def __str__(self):
        return ",".join("%d:%d" % pair for pair in sorted(self.counts.items()))


class Loop:
    """Threads acquire and release repeatedly: see loop.go."""

    def __init__(self, words):
        self.kind, self.shared = words["kind"], words.get("shared") == "true"
        self.exclusive = self.shared and self.kind != "mixed"
        self.hold = int(words.get("hold", 0)) / 1e6
        self.clients, self.locks = [], []
        self.left, self.inside, self.overlaps = 0, 0, 0
        self.mutex = threading.Lock()
        try:
            self.start(words, int(words["clients"]), int(words["threads"]))
        except BaseException:
            self.close()
            raise

    def start(self, words, clients, threads):
        for _ in range(clients):
            client = KazooClient(words["servers"], timeout=SESSION)
            self.clients.append(client)
            client.start(timeout=60)
        for i in range(clients * threads):
            path = words["path"] if self.shared else "%s/%d" % (words["path"], i)
            self.locks.append(self.take(self.clients[i // threads], path, i))

    def take(self, client, path, thread):
        if self.kind != "mixed":
            return [make(client, self.kind, path)]
        return [make(client, "write" if turn == thread % MIX else "read", path) for turn in range(MIX)]

    def run(self, seconds):
        self.left, self.overlaps = 0, 0
        histograms = [Histogram() for _ in self.locks]
        ops, errors = [0] * len(self.locks), []
        gate = threading.Event()

        def turns(i):
            gate.wait()
            end = time.monotonic() + seconds
            try:
                while time.monotonic() < end:
                    self.turn(self.locks[i][ops[i] % len(self.locks[i])], histograms[i])
                    ops[i] += 1
            except Exception as e:  # any error: it is the result
                errors.append(e)

        threads = [threading.Thread(target=turns, args=(i,)) for i in range(len(self.locks))]
        for thread in threads:
            thread.start()
        began = time.monotonic_ns()
        gate.set()
        for thread in threads:
            thread.join()
        took = time.monotonic_ns() - began
        if errors:
            raise errors[0]
        latencies = Histogram()
        for histogram in histograms:
            latencies.merge(histogram)
        return "ops=%d nanos=%d overlaps=%d hist=%s" % (sum(ops), took, self.overlaps, latencies)

    def turn(self, lock, latencies):
        began = time.monotonic_ns()
        lock.acquire()
        if self.exclusive:
            now, left = time.monotonic_ns(), self.left
            if left > began:
                latencies.record(now - left)
            with self.mutex:
                self.inside += 1
                self.overlaps += self.inside != 1
        if self.hold > 0:
            time.sleep(self.hold)
        if self.exclusive:
            with self.mutex:
                self.inside -= 1
            self.left = time.monotonic_ns()
        lock.release()
        if not self.exclusive:
            latencies.record(time.monotonic_ns() - began)

    def close(self):
        for client in self.clients:
            client.stop()
            client.close()


JOBS = {}


def obey(line):
    verb, name, rest = line.split(" ", 2) if line.count(" ") > 1 else line.split(" ") + [""]
    if verb == "open":
        words = dict(word.split("=", 1) for word in rest.split())
        if words["job"] != "loop":
            raise Unsupported
        JOBS[name] = Loop(words)
        return "opened"
    if verb == "run":
        return "ran " + JOBS[name].run(int(rest) / 1000)
    JOBS.pop(name).close()
    return "closed"


def main():
    print("ready kazoo %s on Python %s" % (__version__, platform.python_version()), flush=True)
    for line in sys.stdin:
        try:
            answer = obey(line.rstrip("\n"))
        except Unsupported:
            answer = "unsupported"
        except Exception as e:  # any error: the benchmark waits for an answer
            answer = "failed " + repr(e).replace("\n", " ")
        print(answer, flush=True)
    os._exit(0)


main()
