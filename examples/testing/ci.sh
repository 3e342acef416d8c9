#!/bin/sh
# Tests without docker and without a service: each test process starts its own server, on a free port.
set -eu

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install "github.com/docent-zk/docent/cmd/zktest${VERSION-@main}"

ZKTEST=$bin/zktest "${PYTHON:-python3}" -B -m pytest -q -p no:cacheprovider python
