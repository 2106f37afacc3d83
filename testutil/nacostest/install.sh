#!/bin/sh
# Installs what starting real Nacos servers takes: a JDK of 17 or later and
# Maven. Does nothing where they are there already.
set -eu

have_jdk() {
	command -v java >/dev/null && command -v javac >/dev/null || return 1
	major=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge 17 ]
}

want=""
have_jdk || want="openjdk-17-jdk-headless"
command -v mvn >/dev/null || want="$want maven"
[ -n "$want" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "nacostest: please install$want: there is no apt-get here" >&2
	exit 1
fi
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
$sudo apt-get update -q || true # one list that can't be fetched may not matter
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $want
have_jdk || { echo "nacostest: no JDK of 17 or later after the installation" >&2; exit 1; }
