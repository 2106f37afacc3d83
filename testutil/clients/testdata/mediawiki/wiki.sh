#!/bin/bash
# A MediaWiki is installed, and then people write in it. It prints what the programs say that look after one.
set -euo pipefail
site=$PWD
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
cd "$MEDIAWIKI/maintenance"

if [ "$1" = install ]; then
	php install.php --dbserver "$DB_HOST:$DB_PORT" --dbname "$DB_NAME" --dbuser "$DB_USER" --dbpass "$DB_PASSWORD" \
		--server http://example.org --scriptpath /w --confpath "$files" --pass 'a long password' 'A wiki' Admin
	exit
fi

export MW_CONFIG_FILE=$site/LocalSettings.php
jobs() { # whose order is by chance
	php runJobs.php >"$files/jobs"
	php showJobs.php
}
php createAndPromote.php --bureaucrat Alice 'a longer password'
php createAndPromote.php --sysop Bob 'another password'
for i in 1 2 3 4 5; do
	echo "Text $i of [[Page $((i + 1))]] with [http://example.com/$i a link], 'quotes', \\ and 😀 {{T$i}} [[Category:C$((i % 2))]]" |
		php edit.php -u Admin -s "summary $i" "Page $i"
done
echo 'changed [[Page 9]]' | php edit.php -u Admin -s "it's changed" 'Page 1'
echo 'by alice' | php edit.php -u Alice -m 'Talk:Page 1'
head -c 1500000 /dev/zero | tr '\0' x | php edit.php -u Admin 'Long'
jobs
echo 'Page 2|Moved 2' >"$files/list"
php moveBatch.php -u Admin "$files/list"
echo 'Page 3' >"$files/list"
php deleteBatch.php -u Admin -r because "$files/list"
php undelete.php -u Admin 'Page 3'
php protect.php -u Admin 'Page 4'
echo Bob >"$files/list"
php blockUsers.php "$files/list"
php rollbackEdits.php --user Alice
php dumpBackup.php --full --quiet | sed 's/Page /Copy /g' >"$files/dump.xml"
php importDump.php "$files/dump.xml" 2>&1 | sed 's/ (.*//'
php rebuildtextindex.php | tail -n 1
php refreshLinks.php | tail -n 1
jobs
php initSiteStats.php --update
php showSiteStats.php
