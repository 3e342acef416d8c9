#!/bin/sh
# Installs what is missing for the tests: a C compiler, which Go's race detector needs, and what the
# arguments name, or all without an argument.
#   zookeeper:  what the tests with real servers and those of docs/testing.md need: ZooKeeper, a JDK,
#               Curator, kazoo, JUnit and pytest
#   browser:    Chromium
#   site:       npm
#   etcd:       etcd
#   redis:      Redis
#   sql:        PostgreSQL and MariaDB
#   model:      SPIN
# "race" names nothing more. On systems without apt-get it only prints what is missing.
set -eu

packages=
missing() { packages="$packages $1"; }

# The modules that Debian installs work with Debian's Python, which may not be the first in PATH.
has_modules() {
	for python in python3 /usr/bin/python3; do
		"$python" -c "import $1" 2>/dev/null && return 0
	done
	return 1
}

wants() {
	case " ${wanted} " in *" $1 "*) return 0 ;; esac
	return 1
}

wanted=${*:-zookeeper browser site etcd redis sql model}
for name in $wanted; do
	case $name in
	race | zookeeper | browser | site | etcd | redis | sql | model) ;;
	*) echo "deps.sh: $name: want race, zookeeper, browser, site, etcd, redis, sql or model" >&2 && exit 2 ;;
	esac
done
command -v "$(go env CC)" >/dev/null || missing gcc
[ -e /usr/include/stdlib.h ] || missing libc6-dev
if wants zookeeper; then
	[ -n "${ZOOKEEPER_HOME:-}" ] || [ -e /usr/share/java/zookeeper.jar ] || missing zookeeper
	command -v javac >/dev/null || missing default-jdk-headless
	[ -e /usr/share/java/curator-recipes.jar ] || missing libcurator-recipes-java
	[ -e /usr/share/java/curator-x-discovery.jar ] || missing libcurator-discovery-java
	[ -e /usr/share/java/junit-platform-console.jar ] || missing junit5
	has_modules kazoo.client || missing python3-kazoo
	has_modules 'kazoo.client, pytest' || missing python3-pytest
fi
! wants browser || command -v chromium >/dev/null || missing chromium
! wants site || command -v npm >/dev/null || missing npm
! wants etcd || command -v etcd >/dev/null || missing etcd-server
! wants redis || command -v redis-server >/dev/null || missing redis-server
! wants model || command -v spin >/dev/null || missing spin
if wants sql; then
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing postgresql
	command -v mariadbd >/dev/null || [ -e /usr/sbin/mariadbd ] || missing mariadb-server
fi
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "missing, please install:$packages" \
		"(instead of the package zookeeper, ZOOKEEPER_HOME may name a binary distribution)" >&2
	exit 1
fi
root=
[ "$(id -u)" -eq 0 ] || root=sudo
echo "installing:$packages" >&2
$root env DEBIAN_FRONTEND=noninteractive apt-get update -q
# shellcheck disable=SC2086 # a list of packages
$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
sync # otherwise the servers of the tests wait for the disk
