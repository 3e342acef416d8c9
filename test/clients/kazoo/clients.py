"""The clients of one section."""

import queue

from kazoo.client import KazooClient

SESSION = 20.0
RETRY = {"max_tries": -1, "max_delay": 0.5}

direct = None  # the server's address
proxied = None  # the address of the proxy in front of it

_open = []


def client(**options):
    """Return a connected client."""
    return _start(direct, options)


def proxied_client(**options):
    """Return a connected client whose connections can be cut."""
    return _start(proxied, options)


def _start(address, options):
    # A listener that is added before the start also receives the first connection.
    states = queue.Queue()
    made = KazooClient(**{"hosts": address, "timeout": SESSION, "connection_retry": RETRY, **options})
    made.add_listener(states.put)
    made.states = states
    _open.append(made)
    made.start(timeout=60)
    return made


def close_all():
    for made in _open:
        made.stop()
        made.close()
    _open.clear()


def session(client):
    return client.client_id[0]


def describe(client, stat):
    """Return what two servers must have in common of a node: not the times of its changes, but their order."""
    owner = {0: "none", session(client): "me"}.get(stat.ephemeralOwner, "another")
    return (
        f"version {stat.version}/{stat.cversion}/{stat.aversion}, {stat.dataLength} bytes, "
        f"{stat.numChildren} children, "
        f"owner {owner}, changed +{stat.mzxid - stat.czxid}, children changed +{stat.pzxid - stat.czxid}"
    )
