#!/bin/sh
# Our load generator beside ab, h2load, wrk and k6, on the same targets: do they see the same?
#
#   scripts/crosscheck.sh SUBAK [SECONDS [ROUNDS]]
#
# SUBAK is the binary; each program asks each target SECONDS (5) long, in ROUNDS (3) rounds one after
# the other, so that what disturbs one round disturbs all. Targets are test endpoints of 2 and of 20 ms
# (exponential), which none of them can bring to its limit with 10 and 40 users: what a program does
# between two requests of a user shows at the first and hardly at the second. Prints a table in Markdown
# for each: requests per second and latency, the median of the rounds. What is not installed is named
# and left out; k6 is built once where Go is new enough, into the directory TOOLS (target/tools).
set -eu

K6_VERSION=v1.8.1
tools=${TOOLS:-target/tools}
PATH=$PATH:/usr/local/go/bin
if ! command -v k6 >/dev/null && command -v go >/dev/null; then
    mkdir -p "$tools"
    tools=$(realpath "$tools")
    [ -x "$tools/k6" ] || GOBIN=$tools go install "go.k6.io/k6@$K6_VERSION" >&2 || true
    PATH=$PATH:$tools
fi

subak=${1:?the binary}
seconds=${2:-5}
rounds=${3:-3}
# Service time, users and port of each target.
targets='2ms:10:18990 20ms:40:18991'
work=$(mktemp -d)
endpoints=''
# shellcheck disable=SC2086
trap 'kill $endpoints 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# Whom all ask from now on, how many they are, and where their rows go.
aim() {
    IFS=: read -r service users port <<EOT
$1
EOT
    address=127.0.0.1:$port
    url=http://$address/
    rows=$work/$service
}

for target in $targets; do
    aim "$target"
    mkdir "$rows"
    "$subak" lab endpoint $address --service "exponential:$service" --concurrency 64 \
        >"$rows/endpoint" &
    endpoints="$endpoints $!"
    until grep -qs listens "$rows/endpoint"; do
        kill -0 $! || exit 1
        sleep 0.05
    done
done

# Each prints: requests per second, mean, p50, p95 and p99 in ms; a dash for what it does not say.
# Of ours the rate is without the last interval, in which no more is asked and answers are waited for.
by_subak() {
    "$subak" lab load "$url" --users "$users" --for "${seconds}s" --json --interval 250ms \
        >"$work/subak.json" 2>/dev/null || true
    python3 - "$work/subak.json" <<'PY'
import json, sys
result = json.load(open(sys.argv[1]))
moments, times = result["moments"][:-1], result["latency_ms"]
rate = sum(one["answered"] for one in moments) / sum(one["took_s"] for one in moments)
row = [rate, *(times[key] for key in ("mean", "p50", "p95", "p99"))]
print(*(f"{number:.2f}" for number in row))
PY
}
by_ab() {
    ab -q -k -c "$users" -t "$seconds" -n 10000000 "$url" 2>/dev/null |
        awk '/^Requests per second/ { rate = $4 } /^Total:/ { mean = $3 }
             $1 == "50%" { p50 = $2 } $1 == "95%" { p95 = $2 } $1 == "99%" { p99 = $2 }
             END { print rate, mean, p50, p95, p99 }'
}
by_wrk() {
    wrk -t 1 -c "$users" -d "${seconds}s" --latency "$url" |
        awk 'function ms(t) { return t ~ /us$/ ? t / 1000 : t ~ /ms$/ ? t + 0 : t * 1000 }
             $1 == "Latency" && $2 ~ /[0-9]/ { mean = ms($2) } $1 == "50%" { p50 = ms($2) }
             $1 == "99%" { p99 = ms($2) } /^Requests\/sec/ { rate = $2 }
             END { print rate, mean, p50, "-", p99 }'
}
by_h2load() {
    h2load --h1 -t 1 -c "$users" -D "$seconds" "$url" |
        awk 'function ms(t) { return t ~ /us$/ ? t / 1000 : t ~ /ms$/ ? t + 0 : t * 1000 }
             /^finished in/ { rate = $4 } /^time for request/ { mean = ms($6) }
             END { print rate, mean, "-", "-", "-" }'
}
by_k6() {
    cat >"$work/k6.js" <<JS
import http from 'k6/http';
export const options = { vus: $users, duration: '${seconds}s',
    summaryTrendStats: ['avg', 'p(50)', 'p(95)', 'p(99)'] };
export default function () { http.get('$url'); }
JS
    k6 run --quiet --no-color --summary-export "$work/k6.json" "$work/k6.js" >/dev/null 2>&1
    python3 - "$work/k6.json" <<'PY'
import json, sys
metrics = json.load(open(sys.argv[1]))["metrics"]
times = metrics["http_req_duration"]
row = [metrics["http_reqs"]["rate"], *(times[key] for key in ("avg", "p(50)", "p(95)", "p(99)"))]
print(*(f"{number:.2f}" for number in row))
PY
}

programs=''
for program in subak ab wrk h2load k6; do
    if [ $program = subak ] || command -v $program >/dev/null; then
        programs="$programs $program"
    else
        echo "SKIPPED: $program is not installed" >&2
    fi
done
round=0
while [ $round -lt "$rounds" ]; do
    for target in $targets; do
        aim "$target"
        for program in $programs; do
            by_$program >>"$rows/$program"
        done
    done
    round=$((round + 1))
done

median() {
    sort -n | awk '{ row[NR] = $1 } END { print NR ? row[int((NR + 1) / 2)] : "-" }'
}
table() {
    echo "| program | requests/s | from, to | mean ms | p50 ms | p95 ms | p99 ms |"
    echo "|---|---|---|---|---|---|---|"
    for program in $programs; do
        rates=$(cut -d' ' -f1 "$rows/$program" | sort -n)
        line="| $program | $(echo "$rates" | median | xargs printf '%.0f')"
        line="$line | $(echo "$rates" | sed -n 1p | xargs printf '%.0f')"
        line="$line, $(echo "$rates" | tail -n 1 | xargs printf '%.0f')"
        for column in 2 3 4 5; do
            line="$line | $(cut -d' ' -f$column "$rows/$program" | median)"
        done
        echo "$line |"
    done
}
for target in $targets; do
    aim "$target"
    printf '\nService time %s, %s users:\n\n' "$service" "$users"
    table
done
