#!/bin/sh
# What does a request cost in instructions of Subak's own? Counted by callgrind, so other work on the
# machine changes nothing: 10,000 requests less 2,000, which leaves out what connections cost.
#
#   bench/instructions.sh h1            HTTP/1.1, 64 kept connections
#   bench/instructions.sh h1 log        with a JSON access log of the eleven keys of `make bench`
#   bench/instructions.sh h1 rate       with a rate limit by client
#   bench/instructions.sh h1 shadow=NAME   with this algorithm beside the pool's own
#   bench/instructions.sh h2            HTTP/2 in the clear, 16 clients with 100 streams each
#
# Needs valgrind, curl, for h2 h2load, and `cargo build --release -p subak -p subak-lab`.
set -eu
protocol=${1:?h1 or h2}
with=${2:-nothing}
built=${CARGO_TARGET_DIR:-target}/release
port=${PORT:-$((20000 + $$ % 10000))}
place=$(mktemp -d)
trap 'kill $subak $endpoint 2>/dev/null || :; rm -rf "$place"' EXIT
subak='' endpoint=''

log='' rate='' shadow=''
case $with in
    log) log="access_log = { path = \"$place/access.json\", flush = \"1s\", format = [\"time\", \"client\",
        \"client_port\", \"request\", \"status\", \"bytes_out\", \"pool\", \"endpoint\", \"connect_ms\",
        \"total_ms\", \"user_agent\"] }" ;;
    rate) rate='rate = "1000000/s"' ;;
    shadow=*) shadow="shadow = [\"${with#shadow=}\"]" ;;
    nothing) ;;
    *) echo "with $with? nothing, log, rate or shadow=NAME" >&2; exit 2 ;;
esac
cat >"$place/subak.toml" <<END
workers = 1
admin = { socket = "$place/admin.sock" }
$log
[listener.bench]
bind = "127.0.0.1:$port"
forwarded_headers = { x_forwarded = false }
limits = { requests_per_connection = "unlimited" }
$rate
pool = "bench"
[pool.bench]
$shadow
endpoints = ["127.0.0.1:$((port + 1))", "127.0.0.1:$((port + 2))"]
END

"$built/subak-bench" endpoint "127.0.0.1:$((port + 1))" "127.0.0.1:$((port + 2))" >/dev/null &
endpoint=$!
valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$place/counted" \
    "$built/subak" serve -c "$place/subak.toml" 2>"$place/said" &
subak=$!
tries=0
until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/small"; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || { cat "$place/said" >&2; exit 1; }
    sleep 1
done

ask() {
    case $protocol in
        h1) "$built/subak-bench" load "127.0.0.1:$port" -c 64 -n "$1" ;;
        h2) h2load -c 16 -m 100 -n "$1" "http://127.0.0.1:$port/small" ;;
        *) echo "$protocol? h1 or h2" >&2; exit 2 ;;
    esac >"$place/load"
}
ask 3000
callgrind_control --instr=on "$subak" >/dev/null 2>&1
for count in 2000 10000; do
    ask $count
    callgrind_control --dump "$subak" >/dev/null 2>&1
done
few=$(awk '/^totals:/ { print $2 }' "$place/counted.1")
many=$(awk '/^totals:/ { print $2 }' "$place/counted.2")
echo "$protocol with $with: $(((many - few) / 8000)) instructions a request"
