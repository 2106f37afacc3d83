#!/bin/bash
# Builds the site from the repository's Markdown files into the folder site: docs/site/build.sh [BASE], where BASE is the path
# under which a server has the site, such as /leafsql/. node_modules and the copies of the pages are in .cache/site.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=.cache/site
rm -rf "$work/pages" "$work/.vitepress" site
mkdir -p "$work/pages" "$work/.vitepress"
cp docs/site/package.json docs/site/package-lock.json "$work"
cp docs/site/config.mjs "$work/.vitepress"
git ls-files -z --cached --others --exclude-standard '*.md' '*.png' '*.svg' ':!.github' | tar -c --null --ignore-failed-read -T - | tar -x -C "$work/pages"
cd "$work"
cmp -s package-lock.json node_modules/made-from || { npm ci --silent --no-audit --no-fund && cp package-lock.json node_modules/made-from; }
BASE=${1:-/} npx vitepress build
