#!/bin/bash
# Installs a JDK and Maven, and fetches ZooKeeper with Maven: ${XDG_CACHE_HOME:-~/.cache}/leafsql/zookeeper-CHECKSUM, named
# after the pom.xml that says what.
set -euo pipefail
cd "$(dirname "$0")"
sum=$(sha256sum pom.xml)
root=${XDG_CACHE_HOME:-$HOME/.cache}/leafsql/zookeeper-${sum:0:12}

if [ -d "$root" ] && command -v java >/dev/null; then
	echo "zookeeper: found $root"
	exit
fi
../../../../.ci/install jdk maven
[ ! -d "$root" ] || exit 0
echo "zookeeper: fetching it with Maven into $root"
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$(dirname "$root")/new-zookeeper-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
if ! mvn -q -B -f pom.xml dependency:copy-dependencies -DoutputDirectory="$work/lib" -DincludeScope=runtime >"$work/log" 2>&1; then
	tail -n 5 "$work/log" >&2
	echo "zookeeper: Maven could not fetch it" >&2
	exit 1
fi
mv -T "$work/lib" "$root" 2>/dev/null || [ -d "$root" ] || { echo "zookeeper: cannot write $root" >&2; exit 1; }
