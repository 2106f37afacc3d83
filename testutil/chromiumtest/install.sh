#!/bin/sh
# Installs the browser that looks at pages in tests.
exec "$(dirname "$0")/../../.ci/install" chromium
