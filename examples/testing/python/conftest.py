import os
import subprocess

import pytest
from kazoo.client import KazooClient


class ZooKeeper:
    """A server for tests. It stops when the process of the tests ends, also if that crashes."""

    def __init__(self, *flags):
        command = [os.environ.get("ZKTEST", "zktest"), "-listen", "127.0.0.1:0", "-commands", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        line = self.process.stdout.readline()
        if not line.startswith("zktest: listening on "):
            raise RuntimeError(f"the server does not start: {line!r}")  # the reason is on standard error
        self.hosts = line.split()[-1]

    def tell(self, command):
        """Sends a command and returns what follows "ok" in the answer."""
        self.process.stdin.write(command + "\n")
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok"):
            raise RuntimeError(f"{command}: {answer}")
        return answer[len("ok"):].strip()

    def close(self):
        self.process.stdin.close()  # which ends the server
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def server():
    server = ZooKeeper()
    yield server
    server.close()


@pytest.fixture
def zookeeper(server):
    """Returns the server, emptied."""
    server.tell("wipe")
    server.tell("readonly off")
    server.tell("start")
    return server


@pytest.fixture
def connect(zookeeper):
    """Returns clients that are closed after the test."""
    clients = []

    def connect():
        client = KazooClient(hosts=zookeeper.hosts, timeout=10)
        clients.append(client)
        client.start()
        return client

    yield connect
    zookeeper.tell("start")  # clients cannot close their sessions at a stopped server
    for client in clients:
        client.stop()
        client.close()
