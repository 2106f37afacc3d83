#!/bin/bash
# Installs the clients in other languages that tests run through the proxy: Debian's packages, and what Maven Central has in
# ${XDG_CACHE_HOME:-~/.cache}/leafsql/clients. With the argument all, those of PyPI, npm and crates.io, too.
set -euo pipefail
cd "$(dirname "$0")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/leafsql/clients
mkdir -p "$cache"

fresh() { # fresh NAME FILE ...: whether the folder of that name was made from other files
	[ "$(cat "$cache/$1/made-from" 2>/dev/null)" != "$(cat "${@:2}" | sha256sum)" ] || { echo "clients: $1 found"; return 1; }
	rm -rf "${cache:?}/$1"
	echo "clients: making $1"
}
made() { cat "${@:2}" | sha256sum >"$cache/$1/made-from"; }

../../.ci/install php python commandline jdk maven
java() { # java NAME: the program in that folder, with the libraries that it needs
	fresh "$1" "testdata/$1"/*.* || return 0
	mvn -q -B --color never -f "testdata/$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/$1" -DincludeScope=runtime
	javac -proc:none -cp "$cache/$1/*" -d "$cache/$1" "testdata/$1"/*.java
	made "$1" "testdata/$1"/*.*
}
java java
[ "${1-}" = all ] || exit 0

../../.ci/install node ruby perl rust
java hibernate
java libraries
if fresh python testdata/python/requirements.txt; then
	/usr/bin/python3 -m venv --system-site-packages "$cache/python" # Debian's mysqlclient, which PyPI has as source alone
	"$cache/python/bin/pip" -q --disable-pip-version-check install --ignore-installed -r testdata/python/requirements.txt
	made python testdata/python/requirements.txt
fi
if fresh django testdata/python/requirements.txt; then # whose tests are in its source alone
	mkdir -p "$cache/django"
	"$cache/python/bin/pip" -q --disable-pip-version-check download --no-deps --no-binary :all: -d "$cache/django" \
		"$(grep ^Django testdata/python/requirements.txt)"
	tar -xzf "$cache"/django/*.tar.gz -C "$cache/django" --strip-components=1
	made django testdata/python/requirements.txt
fi
if fresh wordpress testdata/wordpress/wp-config.php; then # out of Debian's packages, without the web server that they want
	mkdir -p "$cache/wordpress"
	(cd "$cache/wordpress" && apt-get -q download wordpress libphp-phpmailer php-getid3 >/dev/null 2>&1 && for package in *.deb; do dpkg-deb -x "$package" .; done)
	cp testdata/wordpress/wp-config.php "$cache/wordpress/usr/share/wordpress"
	made wordpress testdata/wordpress/wp-config.php
fi
if fresh mediawiki testdata/mediawiki/LocalSettings.php; then
	mkdir -p "$cache/mediawiki"
	(cd "$cache/mediawiki" && apt-get -q download mediawiki mediawiki-classes >/dev/null 2>&1 && for package in *.deb; do dpkg-deb -x "$package" .; done)
	made mediawiki testdata/mediawiki/LocalSettings.php
fi
if fresh node testdata/node/package.json testdata/node/schema.prisma; then # without scripts: Prisma's download programs that these clients do not run
	mkdir -p "$cache/node"
	cp testdata/node/package.json testdata/node/schema.prisma "$cache/node"
	npm --prefix "$cache/node" install --silent --no-audit --no-fund --ignore-scripts
	(cd "$cache/node" && PRISMA_SCHEMA_ENGINE_BINARY=/bin/false CHECKPOINT_DISABLE=1 npx --no-install prisma generate --schema schema.prisma >/dev/null)
	made node testdata/node/package.json testdata/node/schema.prisma
fi
if fresh rust testdata/rust/Cargo.toml testdata/rust/src/*.rs; then
	mkdir -p "$cache/rust"
	cp -r testdata/rust/* "$cache/rust"
	cargo build -q --manifest-path "$cache/rust/Cargo.toml"
	made rust testdata/rust/Cargo.toml testdata/rust/src/*.rs
fi
