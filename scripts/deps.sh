#!/bin/sh
# Installs what is not there: a ZooKeeper server and a Java runtime to run it; with the argument "race" also the C compiler that Go's
# race detector needs. On anything but Debian and its kin it only says what is missing.
set -eu

packages=
missing() { packages="$packages $1"; }

[ -n "${ZOOKEEPER_HOME:-}" ] || [ -e /usr/share/java/zookeeper.jar ] || missing zookeeper
[ -n "${JAVA_HOME:-}" ] || command -v java >/dev/null || missing default-jre-headless
if [ "${1:-}" = race ]; then
	command -v "$(go env CC)" >/dev/null || missing gcc
	[ -e /usr/include/stdlib.h ] || missing libc6-dev
fi
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "missing, please install:$packages (or set ZOOKEEPER_HOME and JAVA_HOME)" >&2
	exit 1
fi
root=
[ "$(id -u)" -eq 0 ] || root=sudo
echo "installing:$packages" >&2
$root env DEBIAN_FRONTEND=noninteractive apt-get update -q
# shellcheck disable=SC2086 # a list of packages
$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
