#!/usr/bin/env bash
# Other people's checks, tried on the real binary:
#
#   scripts/suites.sh SUBAK DIRECTORY
#
# promtool: the alert rules, their tests, and a scrape. Prometheus itself: loads the rules, scrapes in
# the dialect that it prefers. prometheus_client: reads the OpenMetrics text strictly. schemathesis: asks
# for everything that the OpenAPI description allows, and for what it does not.
#
# Then scripts/suites/*.sh, each for itself: sslyze, h2spec, gRPC interop, WebSocket, lost requests beside
# nginx and HAProxy, ….
#
# Everything runs on loopback, with a token, and ends with this script. What cannot be had is skipped,
# loudly; status 1 when a check that ran has failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

. scripts/suites/begin.sh

# A Subak before two endpoints, one of which is not there ------------------------

admin=127.0.0.41:19000
front=127.0.0.41:18080
tr -dc a-z0-9 </dev/urandom | head -c 40 >"$work/token" || true
chmod 600 "$work/token"
cat >"$work/subak.toml" <<END
workers = 1
admin = { tcp = "$admin", token_file = "$work/token" }

[listener.web]
bind = "$front"
pool = "app"

[[listener.web.route]]
path = "/here"
respond = { status = 200, body = "here" }

[pool.app]
endpoints = ["127.0.0.41:18081", "127.0.0.41:18082"]
health = { tcp = true, interval = "500ms" }
stick = { table = "source" }
END
"$subak" serve --config "$work/subak.toml" 2>"$work/subak.log" &
processes+=($!)
api() { curl -sS --fail-with-body -H "Authorization: Bearer $(cat "$work/token")" "$@"; }
answers() { api -o /dev/null "http://$admin/v1/status" 2>/dev/null; }
wait_until 10 answers || {
    cat "$work/subak.log" >&2
    exit 1
}
for path in here here there; do curl -s -o /dev/null "http://$front/$path"; done

# Prometheus ---------------------------------------------------------------------

rules=packaging/prometheus
if command -v promtool >/dev/null; then
    check 'promtool: alert rules' promtool check rules "$rules/alerts.yml"
    check 'promtool: tests of alert rules' promtool test rules "$rules/alerts-test.yml"
    api "http://$admin/metrics" >"$work/metrics"
    promtool_metrics() { promtool check metrics <"$work/metrics"; }
    check 'promtool: metrics' promtool_metrics
else
    skipped 'promtool (Debian: prometheus)'
fi

database=127.0.0.41:19090
prometheus_says() { curl -s "http://$database/api/v1/$1"; }
if command -v prometheus >/dev/null; then
    cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$PWD/$rules/alerts.yml"]
scrape_configs:
  - job_name: subak
    authorization: { credentials_file: "$work/token" }
    static_configs: [{ targets: ["$admin"] }]
END
    prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
        --web.listen-address="$database" 2>"$work/prometheus.log" &
    processes+=($!)
    is_scraped() {
        prometheus_says 'query?query=subak_listener_requests_total' | grep -q '"status":"2xx"'
    }
    # The query of every panel and rule finds its metrics: the names are those of the plain text.
    is_complete() {
        for name in $(api "http://$admin/metrics" | sed -n 's/^\(subak_[a-z0-9_]*\).*/\1/p' | sort -u); do
            prometheus_says "query?query=$name" | grep -q '"metric"' || {
                echo "Prometheus has no $name" >&2
                return 1
            }
        done
    }
    has_rules() {
        local told
        told=$(prometheus_says rules)
        ! grep -q '"health":"err"' <<<"$told" && grep -q '"health":"ok"' <<<"$told"
    }
    check 'Prometheus: scrapes' wait_until 30 is_scraped
    check 'Prometheus: has every family that has samples' is_complete
    check 'Prometheus: evaluates every rule' wait_until 30 has_rules
else
    skipped 'Prometheus (Debian: prometheus)'
fi

# Python -------------------------------------------------------------------------

python=$directory/python
if [ ! -x "$python/bin/schemathesis" ]; then
    python3 -m venv "$python" && "$python/bin/pip" -q install 'schemathesis==4.*' prometheus-client ||
        rm -rf "$python"
fi
if [ -x "$python/bin/schemathesis" ]; then
    api -H 'Accept: application/openmetrics-text' "http://$admin/metrics" >"$work/openmetrics"
    cat >"$work/read.py" <<'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
print(len(list(read(open(sys.argv[1]).read()))), "families")
END
    check 'prometheus_client: OpenMetrics' "$python/bin/python" "$work/read.py" "$work/openmetrics"
    # Refusing more than a JSON Schema can say (1.0 for a whole number, a key given twice) is meant. The
    # stateful phase takes the number `id` of an endpoint for what its path names it by.
    description=$PWD/crates/admin/openapi.json
    # It leaves files where it runs.
    cd "$work"
    check 'schemathesis' "$python/bin/schemathesis" run --url "http://$admin" \
        -H "Authorization: Bearer $(cat "$work/token")" --max-examples "${EXAMPLES:-30}" --seed 1 \
        --phases examples,coverage,fuzzing \
        --exclude-checks positive_data_acceptance --warnings off \
        "$description"
    check 'Subak still answers' answers
else
    skipped 'schemathesis and prometheus_client (a Python with venv, and PyPI)'
fi

# Protocols, certificates --------------------------------------------------------

cd "$root"
for suite in scripts/suites/*.sh; do
    [ "$suite" = scripts/suites/begin.sh ] || "$suite" "$subak" "$directory" || failed=1
done
exit $failed
