#!/bin/bash
# Unpacks promtool, Prometheus' own checker of metrics and rules, for the tests that need it:
# ${XDG_CACHE_HOME:-~/.cache}/leafsql/promtool. Nothing is installed into the system, and no Prometheus is started.
set -euo pipefail
root=${XDG_CACHE_HOME:-$HOME/.cache}/leafsql/promtool

if command -v promtool >/dev/null || [ -x "$root/promtool" ]; then
	echo "promtool: found"
	exit
fi
for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null || { echo "promtool: no $tool here; install promtool (Debian's package prometheus) yourself" >&2; exit 1; }
done

echo "promtool: unpacking Debian's prometheus into $root"
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$(dirname "$root")/new-promtool-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work"
download() { apt-get -q -o APT::Sandbox::User= download prometheus >log 2>&1; }
if ! download; then
	# A fresh machine has no lists of packages yet, and root may fetch them.
	{ [ "$(id -u)" = 0 ] && { apt-get -q update >log 2>&1 || true; } && download; } || {
		tail -n 5 log >&2
		echo "promtool: apt-get could not download prometheus; run as root: apt-get update" >&2
		exit 1
	}
fi
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool
mkdir -p "$root"
mv promtool "$root/promtool"
