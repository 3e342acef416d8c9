"""kazoo against a server: see the Go package beside this folder."""

import os
import sys
import traceback

import access
import clients
import control
import locks
import nodes
import recipes
import sessions
import watches

SECTIONS = [
    nodes.modes,
    nodes.versions,
    nodes.errors,
    nodes.transactions,
    nodes.lists,
    access.digest,
    access.credentials_come_first,
    watches.one_shot,
    watches.data_watch,
    watches.children_watch,
    watches.tree_cache,
    locks.lock,
    locks.read_write,
    locks.semaphore,
    locks.election,
    locks.lease,
    recipes.barriers,
    recipes.counter,
    recipes.queues,
    recipes.parties,
    recipes.partitioner,
    sessions.cut,
    sessions.drop,
    sessions.restart,
    sessions.expiry,
    sessions.silence,
    nodes.commands,
]


def main():
    clients.direct, clients.proxied = sys.argv[1:3]
    control.listen()
    for section in SECTIONS:
        section()
        clients.close_all()
    control.say("done")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
