#!/usr/bin/env bash
# Requests lost while an endpoint is ill, beside nginx and HAProxy, in the quick form; the goals are
# those of docs/RELIABILITY.md:
#
#   scripts/suites/faults.sh SUBAK DIRECTORY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/suites/begin.sh

for program in python3 unshare ip nft nginx haproxy; do
    if ! PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "$program" >/dev/null; then
        skipped "what a fault costs ($program)"
        exit 0
    fi
done
if ! unshare --net --pid --fork true 2>/dev/null && ! unshare --map-root-user --net --pid --fork true 2>/dev/null; then
    skipped 'what a fault costs (namespaces are not allowed here)'
    exit 0
fi
check 'what a fault costs' scripts/faults "$subak" --quick --check \
    --columns subak,subak-probes,nginx,haproxy-redispatch --json "$directory/faults.jsonl"
exit $failed
