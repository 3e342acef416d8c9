#!/bin/sh
# Installs what is missing for the tests.
#   race:         a C compiler, which Go's race detector needs
#   no argument:  also what the tests with real servers and those of docs/testing.md need: ZooKeeper, a
#                 JDK, Curator, kazoo, JUnit and pytest
#   browser:      Chromium, for the tests of the page, beside the C compiler
#   bench:        also etcd, if it is available
# On systems without apt-get it only prints what is missing.
set -eu

packages=
optional=
missing() { packages="$packages $1"; }

# The modules that Debian installs work with Debian's Python, which may not be the first in PATH.
has_modules() {
	for python in python3 /usr/bin/python3; do
		"$python" -c "import $1" 2>/dev/null && return 0
	done
	return 1
}

command -v "$(go env CC)" >/dev/null || missing gcc
[ -e /usr/include/stdlib.h ] || missing libc6-dev
case "${1:-}" in race | bench) ;; *) command -v chromium >/dev/null || missing chromium ;; esac
case "${1:-}" in race | browser) ;; *)
	[ -n "${ZOOKEEPER_HOME:-}" ] || [ -e /usr/share/java/zookeeper.jar ] || missing zookeeper
	command -v javac >/dev/null || missing default-jdk-headless
	[ -e /usr/share/java/curator-recipes.jar ] || missing libcurator-recipes-java
	[ -e /usr/share/java/curator-x-discovery.jar ] || missing libcurator-discovery-java
	[ -e /usr/share/java/junit-platform-console.jar ] || missing junit5
	has_modules kazoo.client || missing python3-kazoo
	has_modules 'kazoo.client, pytest' || missing python3-pytest
	;;
esac
[ "${1:-}" != bench ] || command -v etcd >/dev/null || optional=etcd-server
[ -n "$packages$optional" ] || exit 0

if ! command -v apt-get >/dev/null; then
	[ -n "$packages" ] || exit 0
	echo "missing, please install:$packages" \
		"(instead of the package zookeeper, ZOOKEEPER_HOME may name a binary distribution)" >&2
	exit 1
fi
root=
[ "$(id -u)" -eq 0 ] || root=sudo
echo "installing:$packages $optional" >&2
$root env DEBIAN_FRONTEND=noninteractive apt-get update -q || [ -z "$packages" ] || exit 1
install() { $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"; }
# shellcheck disable=SC2086 # a list of packages
[ -z "$packages" ] || install $packages
[ -z "$optional" ] || install "$optional" || echo "without $optional: the benchmark omits it" >&2
sync # otherwise the servers of the tests wait for the disk
