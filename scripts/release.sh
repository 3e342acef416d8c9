#!/bin/sh
# Prints the commands that tag a release of all modules, or says why there can be none. Changes nothing.
# With -prepare it has the modules below contrib require that version, and commits nothing.
#
#	scripts/release.sh -prepare v0.1.0
#	scripts/release.sh v0.1.0
set -eu
cd "$(dirname "$0")/.."

failed=
fail() {
	echo "release: $*" >&2
	failed=yes
}

prepare=
if [ "${1-}" = -prepare ]; then
	prepare=yes
	shift
fi
version=${1-}
number=${version#v}
if ! printf '%s\n' "$version" | grep -Eq '^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.]+)?$'; then
	echo "usage: scripts/release.sh [-prepare] v<major>.<minor>.<patch>" >&2
	exit 2
fi

# Other modules see the versions in these files, and not the replace beside them.
if [ -n "$prepare" ]; then
	for file in contrib/*/go.mod; do
		go mod edit -require "github.com/docent-zk/docent@$version" "$file"
	done
	for file in contrib/*/go.mod test/*/go.mod examples/*/go.mod; do
		(cd "${file%/go.mod}" && go mod tidy)
	done
	exit
fi

# entry prints what the changelog has of this version.
entry() {
	awk -v head="## [$number] - " 'index($0, "## [") == 1 { on = index($0, head) == 1 } on' CHANGELOG.md
}
entry | grep -Eq '^## \[.*\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$' ||
	fail "CHANGELOG.md has no heading \"## [$number] - <year>-<month>-<day>\""
entry | grep -q '^- ' || fail "CHANGELOG.md has no entries for $number"

[ -z "$(git status --porcelain)" ] || fail "there are changes without a commit"

# Modules below test and examples are not for other modules, and have no versions.
tags=
for file in $(git ls-files 'go.mod' '*/go.mod'); do
	module=${file%go.mod}
	case $module in
	test/* | examples/*)
		echo "# no tag: ${module%/}"
		continue
		;;
	contrib/*)
		required=$(awk '{ sub(/^require /, "") } $1 == "github.com/docent-zk/docent" && $2 != "=>" { print $2; exit }' "$file")
		[ "$required" = "$version" ] || fail "$file requires docent ${required:-in no version}, not $version"
		;;
	esac
	tag=$module$version
	! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || fail "there is a tag $tag"
	tags="$tags $tag"
done
[ -z "$failed" ] || exit 1

commit=$(git rev-parse HEAD)
for tag in $tags; do
	echo "git tag -a -m 'docent $version' $tag $commit"
done
echo "git push origin$tags"
