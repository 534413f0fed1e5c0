#!/usr/bin/env bash
# Certificates by ACME from Pebble, and the front of examples/https-front.toml driven by k6:
#
#   scripts/suites/certificates.sh SUBAK DIRECTORY
#
# Pebble (Go): the end-to-end tests in crates/subak/tests/tls/acme.rs, which `make test` skips where it
# is not installed. k6 (Go): the example as it stands, but for its addresses and a certificate made for
# this run; a few seconds of the load of examples/https-front.js, in the middle of which the server that
# is chosen dies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/suites/begin.sh

PEBBLE_VERSION=v2.10.1
K6_VERSION=v1.8.1

# A program of Go: the machine's own, or built once.
tool() {
    local name=$1 module=$2
    command -v "$name" && return
    [ -x "$directory/bin/$name" ] ||
        GOBIN=$directory/bin go install "$module" >&2 || return 1
    echo "$directory/bin/$name"
}
PATH=$PATH:/usr/local/go/bin

if pebble=$(tool pebble "github.com/letsencrypt/pebble/v2/cmd/pebble@$PEBBLE_VERSION") &&
    resolver=$(tool pebble-challtestsrv "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@$PEBBLE_VERSION"); then
    acme() {
        PATH=$(dirname "$pebble"):$(dirname "$resolver"):$PATH \
            cargo test --locked --quiet --package subak --test tls acme::
    }
    check 'Pebble: certificates by ACME' acme
else
    skipped 'Pebble (Go 1.24 and its module proxy)'
fi

k6=$(tool k6 "go.k6.io/k6@$K6_VERSION") || {
    skipped 'k6 before the HTTPS front (Go 1.25 and its module proxy)'
    exit $failed
}

host=127.0.0.43
http=$host:18080
https=$host:18443
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=front.test \
    -addext "subjectAltName=IP:$host" -keyout "$work/site.key" -out "$work/site.pem" 2>/dev/null
chmod 600 "$work/site.key"

# Each server says who it is: a Subak that answers by itself.
servers=()
for place in 2 3 4; do
    cat >"$work/server-$place.toml" <<END
workers = 1
admin = false
[listener.web]
bind = "$host:1909$place"
route = [{ respond = { status = 200, body = "$place" } }]
END
    "$subak" serve --config "$work/server-$place.toml" 2>"$work/server-$place.log" &
    servers[place]=$!
    processes+=($!)
done

ask() { curl -sS --cacert "$work/site.pem" "$@"; }
answers() { ask -o /dev/null --fail "https://$https/" 2>/dev/null; }
redirects() {
    ask -si "http://$http/a?b=c" | tr -d '\r' >"$work/redirect"
    grep -q '^HTTP/1.1 30[1-8]' "$work/redirect" &&
        grep -qix "location: https://$https/a?b=c" "$work/redirect"
}
is_remembered() { ask -I "https://$https/" | grep -qi '^strict-transport-security: max-age=31536000'; }
average_load() {
    local chosen after
    chosen=$(ask "https://$https/")
    (sleep 4 && kill "${servers[chosen]}") &
    "$k6" run --quiet --no-color -e URL="https://$https/" -e INSECURE=1 -e USERS="${USERS:-20}" \
        -e PACE=0.01 examples/https-front.js || return 1
    after=$(ask "https://$https/")
    printf 'server %s died under load, server %s took over\n' "$chosen" "$after"
    [ "$chosen" != "$after" ]
}

sed -e "s/\"\*:80\"/\"$http\"/" -e "s/\"\*:443\"/\"$https\"/" \
    -e "s/redirect_to_https = true/redirect_to_https = ${https#*:}/" \
    -e "s/10\.0\.0\.\([234]\):8080/$host:1909\1/g" examples/https-front.toml >"$work/front.toml"
"$subak" serve --config "$work/front.toml" 2>"$work/front.log" &
processes+=($!)
if wait_until 10 answers; then
    check 'HTTPS front: HTTP is sent to HTTPS' redirects
    check 'HTTPS front: browsers are told to come by HTTPS' is_remembered
    check 'HTTPS front: k6, average load, one server dies' average_load
else
    cat "$work/front.log" >&2
    failed=1
fi
exit $failed
