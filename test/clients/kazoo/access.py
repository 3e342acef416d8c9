"""Permissions of clients."""

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, make_acl, make_digest_acl

from clients import client, describe
from control import failure, ok


def digest():
    owner, other = client(), client()
    owner.add_auth("digest", "ann:secret")
    owner.create("/private", b"x", acl=CREATOR_ALL_ACL)
    ok("ACL for its owner", owner.get_acls("/private")[0])
    ok("ACL for another", failure(other.get_acls, "/private"))
    ok("read by another", failure(other.get, "/private"))
    ok("set by another", failure(other.set, "/private", b""))
    ok("create by another", failure(other.create, "/private/child"))
    ok("ACL set by another", failure(other.set_acls, "/private", OPEN_ACL_UNSAFE))
    readable = [make_digest_acl("ann", "secret", all=True), make_acl("world", "anyone", read=True)]
    ok("ACL changed", describe(owner, owner.set_acls("/private", readable, version=0)))
    ok("read by another now", other.get("/private")[0])
    ok("ACL masked for another", sorted(other.get_acls("/private")[0]))
    ok("ACL at an old version", failure(owner.set_acls, "/private", readable, version=0))
    ok("empty identity", failure(other.create, "/no-identity", acl=CREATOR_ALL_ACL))
    ok("unknown scheme", failure(other.add_auth, "nothing", "x"))


def credentials_come_first():
    zk = client(auth_data=[("digest", "ann:secret"), ("digest", "bob:secret")])
    zk.create("/both", acl=CREATOR_ALL_ACL)
    ok("two identities", sorted(acl.id.id for acl in zk.get_acls("/both")[0]))
