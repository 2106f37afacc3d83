#!/bin/bash
# Unpacks promtool, Prometheus' own checker of metrics and rules, for the tests that need it, or with the argument prometheus the
# server: ${XDG_CACHE_HOME:-~/.cache}/leafsql/promtool. Nothing is installed into the system, and no Prometheus is started.
set -euo pipefail
program=${1:-promtool}
root=${XDG_CACHE_HOME:-$HOME/.cache}/leafsql/promtool

if command -v "$program" >/dev/null || [ -x "$root/$program" ]; then
	echo "$program: found"
	exit
fi
for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null || { echo "$program: no $tool here; install $program (Debian's package prometheus) yourself" >&2; exit 1; }
done

echo "$program: unpacking Debian's prometheus into $root"
mkdir -p "$root"
work=$(mktemp -d "$(dirname "$root")/new-promtool-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work"
download() { apt-get -q -o APT::Sandbox::User= download prometheus >log 2>&1; }
if ! download; then
	# A fresh machine has no lists of packages yet, and root may fetch them.
	{ [ "$(id -u)" = 0 ] && { apt-get -q update >log 2>&1 || true; } && download; } || {
		tail -n 5 log >&2
		echo "$program: apt-get could not download prometheus; run as root: apt-get update" >&2
		exit 1
	}
fi
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 "./usr/bin/$program"
mv "$program" "$root/$program"
