#!/bin/sh
# Unpacks a Redis server.
exec "$(dirname "$0")/../../../../.ci/unpack" redis /usr/bin/redis-server redis-server redis-tools
