#!/bin/sh
# Unpacks an etcd server.
exec "$(dirname "$0")/../../../../.ci/unpack" etcd /usr/bin/etcd etcd-server
