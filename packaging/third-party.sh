#!/bin/sh
# Prints the licences of all crates that are in the binary: each text once, with the crates it is for.
#
#   packaging/third-party.sh > THIRD-PARTY
#
# It needs cargo and the sources that it has fetched to build the binary; it asks no network.
set -eu
export LC_ALL=C

cd "$(dirname "$0")/.."
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT

# "name vVERSION licence", without the crates of the workspace, which stand with their path.
cargo tree --locked --offline --quiet --package subak --edges normal --prefix none --no-dedupe --format '{p} {l}' |
    grep -v '(/' | sort -u >"$texts/crates"

echo 'Subak contains these works of others, under the licences that are named:'
echo
sed 's/^\([^ ]*\) v\([^ ]*\) /\1 \2: /; s/^/  /' "$texts/crates"

while read -r name version _; do
    for file in "$registry"/*/"$name-${version#v}"/LICEN[CS]E* "$registry"/*/"$name-${version#v}"/COPYING* \
        "$registry"/*/"$name-${version#v}"/NOTICE*; do
        [ -f "$file" ] || continue
        sum=$(sha256sum <"$file" | cut -c1-64)
        [ -e "$texts/$sum" ] || cp "$file" "$texts/$sum"
        echo "$name ${version#v}" >>"$texts/$sum.of"
    done
done <"$texts/crates"

for of in "$texts"/*.of; do
    [ -e "$of" ] || continue
    printf '\n%s\n' '--------------------------------------------------------------------------------'
    sort -u "$of" | tr '\n' ',' | sed 's/,$/:\n\n/; s/,/, /g'
    cat "${of%.of}"
done
