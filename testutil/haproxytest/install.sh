#!/bin/sh
# Installs HAProxy, which tests put before leafsql's proxy.
exec "$(dirname "$0")/../../.ci/install" haproxy
