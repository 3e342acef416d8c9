"""Nodes of all kinds, and the operations on them."""

from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from clients import client, describe
from control import check, failure, ok

MODES = {
    "persistent": {},
    "ephemeral": {"ephemeral": True},
    "sequential": {"sequence": True},
    "ephemeral sequential": {"ephemeral": True, "sequence": True},
}


def modes():
    zk = client()
    zk.create("/modes", b"")
    for name, mode in MODES.items():
        path = zk.create("/modes/" + name.replace(" ", "-") + "-", b"data", **mode)
        ok("create " + name, path, describe(zk, zk.exists(path)))
    path, stat = zk.create("/modes/stat", b"data", include_data=True)
    ok("create with stat", path, describe(zk, stat))
    ok("create with parents", zk.create("/modes/a/b/c", makepath=True))
    ok("parent", describe(zk, zk.exists("/modes")))


def versions():
    zk = client()
    zk.create("/versions", b"0")
    ok("set at version", describe(zk, zk.set("/versions", b"one", version=0)))
    ok("set at an old version", failure(zk.set, "/versions", b"x", version=0))
    ok("set at any version", describe(zk, zk.set("/versions", b"two")))
    data, stat = zk.get("/versions")
    ok("read", data, describe(zk, stat))
    ok("delete at an old version", failure(zk.delete, "/versions", version=1))
    zk.delete("/versions", version=2)
    ok("exists when deleted", zk.exists("/versions"))
    zk.create("/versions", b"")
    ok("empty data", zk.get("/versions")[0])


def errors():
    zk = client()
    zk.create("/errors-ephemeral", ephemeral=True)
    zk.create("/errors/child", makepath=True)
    ok("exists on a missing node", zk.exists("/errors/missing"))
    ok("read a missing node", failure(zk.get, "/errors/missing"))
    ok("children of a missing node", failure(zk.get_children, "/errors/missing"))
    ok("set a missing node", failure(zk.set, "/errors/missing", b""))
    ok("delete a missing node", failure(zk.delete, "/errors/missing"))
    ok("create without parent", failure(zk.create, "/errors/missing/child"))
    ok("create again", failure(zk.create, "/errors/child"))
    ok("delete with children", failure(zk.delete, "/errors"))
    ok("child of an ephemeral", failure(zk.create, "/errors-ephemeral/child"))
    ok("reserved node", failure(zk.delete, "/zookeeper"))
    zk.delete("/errors", recursive=True)
    ok("deleted with children", zk.exists("/errors"))


def transactions():
    zk = client()
    zk.create("/tx", b"0")
    tx = zk.transaction()
    tx.create("/tx/a", b"a")
    tx.create("/tx/s-", ephemeral=True, sequence=True)
    tx.check("/tx", version=0)
    tx.set_data("/tx", b"1", version=0)
    tx.delete("/tx/a")
    created, sequential, checked, stat, deleted = tx.commit()
    ok("a transaction", created, sequential, checked, describe(zk, stat), deleted)
    tx = zk.transaction()
    tx.create("/tx/b")
    tx.set_data("/tx", b"2", version=7)
    tx.delete("/tx/missing")
    results = tx.commit()
    ok("a failed transaction", *(type(r).__name__ for r in results))
    check(isinstance(results[0], RolledBackError) and isinstance(results[2], RuntimeInconsistency),
          f"results {results}")
    ok("nothing of it is done", zk.get_children("/tx"), zk.get("/tx")[0])


def lists():
    zk = client()
    for child in "bac":
        zk.create("/lists/" + child, child.encode(), ephemeral=True, makepath=True)
    children, stat = zk.get_children("/lists", include_data=True)
    ok("children", sorted(children), describe(zk, stat))
    ok("sync", zk.sync("/lists"))


def commands():
    zk = client()
    ok("ruok", zk.command(b"ruok"))
    ok("version", ".".join(str(part) for part in zk.server_version()[:2]))
