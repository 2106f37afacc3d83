#!/bin/bash
# Unpacks Galera for the clusters of this package, from the distribution of the machine's own MariaDB:
# ${XDG_CACHE_HOME:-~/.cache}/leafsql/galera. Nothing is installed into the system.
set -euo pipefail
root=${XDG_CACHE_HOME:-$HOME/.cache}/leafsql/galera
library=usr/lib/galera/libgalera_smm.so

for found in "/$library" "$root/$library"; do
	if [ -e "$found" ]; then
		echo "galera: found $found"
		exit
	fi
done
for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null || { echo "galera: no $tool here; install Galera's library (Debian's package galera-4) yourself" >&2; exit 1; }
done

echo "galera: unpacking galera-4 into $root"
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$(dirname "$root")/new-galera-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work"
download() { apt-get -q -o APT::Sandbox::User= download galera-4 >log 2>&1; }
if ! download; then
	# A fresh machine has no lists of packages yet, and root may fetch them.
	{ [ "$(id -u)" = 0 ] && { apt-get -q update >log 2>&1 || true; } && download; } || {
		tail -n 5 log >&2
		echo "galera: apt-get could not download galera-4; run as root: apt-get update" >&2
		exit 1
	}
fi
mkdir root
dpkg-deb -x galera-4_*.deb root
rm -rf root/usr/share
mv -T root "$root" 2>/dev/null || [ -e "$root/$library" ] || { echo "galera: cannot write $root" >&2; exit 1; }
