#!/bin/sh
# Unpacks Galera for the clusters of this package, from the distribution of the machine's own MariaDB.
exec "$(dirname "$0")/../../.ci/unpack" galera /usr/lib/galera/libgalera_smm.so galera-4
