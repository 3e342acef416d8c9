#!/bin/sh
# Looks for known vulnerabilities in what the modules of this repository use, and their tests. Fails
# if there are any, and if it could not look. VULNDB is the database, also as file:///folder.
set -eu
db=${VULNDB:-https://vuln.go.dev}
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
GOBIN=$tool go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
vulnerable= unknown=
for file in $(find . -name go.mod -not -path '*/testdata/*' | sort); do
	folder=$(dirname "$file")
	echo "== $folder"
	result=0
	(cd "$folder" && "$tool/govulncheck" -db "$db" -scan package -test ./...) || result=$?
	case $result in
	0) ;;
	3) vulnerable="$vulnerable $folder" ;;
	*) unknown="$unknown $folder" ;;
	esac
done
if [ -n "$vulnerable" ]; then
	echo "VULNERABLE by $db:$vulnerable" >&2
fi
if [ -n "$unknown" ]; then
	echo "NOT CHECKED, because $db could not be asked or the module does not compile:$unknown" >&2
fi
[ -z "$vulnerable$unknown" ]
