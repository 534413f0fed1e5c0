#!/bin/sh
# What does a shadow cost a request, in instructions? Counted by callgrind, so other work on the machine
# changes nothing: 60,000 requests less 20,000, less the same without a shadow. 10 endpoints, 8 requests
# under way.
#
#   bench/shadow.sh                     every algorithm
#   bench/shadow.sh maglev hash         these
#
# Needs valgrind.
set -eu
built=$(cargo bench -p subak-pool --bench shadow --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -x "$built" ] || { echo "it was not built" >&2; exit 1; }
counted=$(mktemp)
trap 'rm -f "$counted"' EXIT

run() {
    valgrind --tool=callgrind --callgrind-out-file="$counted" "$built" "$1" "$2" >/dev/null 2>&1
    awk '/^(totals|summary):/ { print $2; exit }' "$counted"
}
cost() {
    few=$(run "$1" 20000)
    many=$(run "$1" 60000)
    echo $(((many - few) / 40000))
}

plain=$(cost none)
echo "none: $plain instructions to acquire and settle"
all='round_robin ip_hash new_hash least_connections least_response_time least_packets least_bandwidth
    random power_of_two peak_ewma hash maglev first'
for name in ${*:-$all}; do
    echo "$name: $(($(cost "$name") - plain))"
done
