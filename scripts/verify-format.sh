#!/bin/sh
# Fails if a Go file is not formatted. "make fix" formats it.
set -eu
files=$(gofmt -l .)
[ -z "$files" ] || { printf 'not formatted, see "make fix":\n%s\n' "$files" >&2; exit 1; }
