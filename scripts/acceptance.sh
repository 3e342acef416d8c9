#!/bin/sh
# Runs the acceptance tests in process and on a real server, and gives what they said to test/acceptance/report, with the arguments
# of this script. That fails if a test did, so the status of the runs does not matter here.
set -eu
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
run() { go test -race -count=1 -timeout 10m -json ./test/acceptance || true; }
unset ZOOKEEPER ZKTEST_SEED ZKTEST_SEEDS
run >"$runs/inprocess" &
ZOOKEEPER=1 run >"$runs/real" # most of both is waiting
wait
go run ./test/acceptance/report -inprocess "$runs/inprocess" -real "$runs/real" "$@"
