"""Connections that are lost and restored, and sessions that end."""

import queue

from kazoo.protocol.states import KazooState
from kazoo.security import CREATOR_ALL_ACL

from clients import client, describe, proxied_client, session
from control import ask, check, equal, failure, next_of, ok
from watches import Events

SHORT_SESSION = 8.0
LONG_SESSION = 60.0  # longer than a restart of the server


def expect(zk, *states):
    for want in states:
        equal("connection state", want, next_of(f"the state {want}", zk.states))


def lost(zk):
    """Wait for the end of the session. On a busy machine, the connection may be lost and restored before it."""
    state = KazooState.SUSPENDED
    while state != KazooState.LOST:
        check(state in (KazooState.SUSPENDED, KazooState.CONNECTED), f"connection state {state}")
        state = next_of("the state LOST", zk.states)


def reconnected(zk, before):
    expect(zk, KazooState.CONNECTED)
    equal("session", before, session(zk))


def cut():
    """kazoo sets no watches again when it reconnects; its recipes read again what they watch."""
    zk, other = proxied_client(), client()
    expect(zk, KazooState.CONNECTED)
    data, children = queue.Queue(), queue.Queue()
    zk.create("/cut/mine", ephemeral=True, makepath=True)
    zk.DataWatch("/cut", func=lambda value, stat: data.put(value))
    zk.ChildrenWatch("/cut", func=lambda names: children.put(sorted(names)))
    ok("before", next_of("the data", data), next_of("the children", children))
    before = session(zk)
    ask("cut")
    expect(zk, KazooState.SUSPENDED)
    other.set("/cut", b"changed")
    other.create("/cut/comes")
    ask("mend")
    reconnected(zk, before)
    ok("missed changes", next_of("the data", data), next_of("the children", children))
    equal("owner", before, other.exists("/cut/mine").ephemeralOwner)


def drop():
    """The session, its credentials and a held lock survive a lost connection."""
    zk, other = proxied_client(), client()
    expect(zk, KazooState.CONNECTED)
    zk.add_auth("digest", "eve:secret")
    zk.create("/dropped", acl=CREATOR_ALL_ACL)
    lock = zk.Lock("/dropped-lock", "one")
    lock.acquire()
    events, before = Events(), session(zk)
    ask("drop")
    expect(zk, KazooState.SUSPENDED)
    reconnected(zk, before)
    ok("credentials after a reconnect", describe(zk, zk.set("/dropped", b"1")))
    ok("lock after a reconnect", other.Lock("/dropped-lock", "two").acquire(blocking=False), lock.contenders())
    zk.get("/dropped", watch=events)
    zk.set("/dropped", b"2")
    ok("watch after a reconnect", events.next())
    lock.release()


def restart():
    """A restarted server keeps sessions."""
    zk = proxied_client(timeout=LONG_SESSION)
    expect(zk, KazooState.CONNECTED)
    zk.create("/restarted", b"kept", ephemeral=True)
    before = session(zk)
    ask("stop")
    expect(zk, KazooState.SUSPENDED)
    ask("start")
    reconnected(zk, before)
    data, stat = zk.retry(zk.get, "/restarted")
    ok("node across a restart", data, describe(zk, stat))
    ok("create across a restart", failure(zk.create, "/restarted"))


def expiry():
    zk, other = client(), client()
    expect(zk, KazooState.CONNECTED)
    deletion, before = Events(), zk.client_id
    lock = zk.Lock("/expired-lock", "one")
    lock.acquire()
    zk.create("/expired", ephemeral=True)
    other.exists("/expired", watch=deletion)
    ask(f"expire {before[0]:x} {before[1].hex()}")
    ok("the others see the end of a session", deletion.next(), other.exists("/expired"))
    lost(zk)
    expect(zk, KazooState.CONNECTED)
    check(session(zk) != before[0], "the old session has not ended")
    ok("lock after the end of a session", other.Lock("/expired-lock", "two").acquire(blocking=False))
    zk.create("/expired", ephemeral=True)
    ok("a new session", describe(zk, zk.exists("/expired")))


def silence():
    """Only the server ends the session, when it has received nothing for long enough."""
    zk, other, deletion = proxied_client(timeout=SHORT_SESSION), client(), Events()
    expect(zk, KazooState.CONNECTED)
    before = session(zk)
    zk.create("/silent", ephemeral=True)
    other.exists("/silent", watch=deletion)
    ask("cut")
    ok("the end of a silent session", deletion.next())
    ask("mend")
    lost(zk)
    expect(zk, KazooState.CONNECTED)
    check(session(zk) != before, "the old session has not ended")
    ok("after silence", zk.exists("/silent"))
