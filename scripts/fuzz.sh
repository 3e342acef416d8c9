#!/bin/sh
# Runs every fuzz test of the module for the given time.
set -eu
for file in $(grep -rl --include='*_test.go' '^func Fuzz' .); do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$file"); do
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" -fuzzminimizetime 10x "$(dirname "$file")"
	done
done
