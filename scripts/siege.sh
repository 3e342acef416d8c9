#!/bin/sh
# Besieges real servers: siege.sh DURATION [SEED]. What happens is printed while it happens. The last line
# is the verdict, also if the test does not come to one or is interrupted. Without a verdict that it
# has passed the siege fails.
set -eu
duration=$1
seed=${2:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
verdict=$(mktemp)
trap 'rm -f "$verdict"' EXIT
trap ':' INT # go test gets it, too, and ends
echo "siege of $duration with seed $seed"
status=0
ZOOKEEPER=1 DOCENT_SIEGE=$duration DOCENT_SIEGE_SEED=$seed DOCENT_SIEGE_VERDICT=$verdict \
	go test -count=1 -race -timeout 0 -v -run '^TestSiege$' ./test/chaos || status=$?
[ -s "$verdict" ] || echo "siege FAILED with seed $seed, without a verdict" >"$verdict"
cat "$verdict"
case $(cat "$verdict") in
"siege passed"*) exit "$status" ;;
*) exit "$((status ? status : 1))" ;;
esac
