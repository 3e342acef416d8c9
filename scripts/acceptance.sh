#!/bin/sh
# Runs the acceptance tests in process and on a real server. It then runs test/acceptance/report on
# their output, with the arguments of this script. The report fails if a test has failed, so the exit
# status of the runs is ignored.
set -eu
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
run() { go test -count=1 -timeout 20m -vet=off -json ./test/acceptance || true; }
unset ZOOKEEPER ZKTEST_SEED ZKTEST_SEEDS
run >"$runs/inprocess" &
ZOOKEEPER=1 run >"$runs/real" # both at once: they mostly wait
wait
go run ./test/acceptance/report -inprocess "$runs/inprocess" -real "$runs/real" "$@"
