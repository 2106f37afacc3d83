#!/bin/sh
# Installs what starting real Nacos servers takes. Maven fetches the servers themselves when one is first started.
exec "$(dirname "$0")/../../.ci/install" jdk maven
