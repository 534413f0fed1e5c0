#!/usr/bin/env bash
# Conversations that break TLS: each gets the alert that the standards have for it, or one that
# docs/tls.md lists as rustls's own; beside nginx, where it is installed:
#
#   scripts/suites/alerts.sh SUBAK DIRECTORY
#
# tlslite-ng is the client, because it lets every message be changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/suites/begin.sh

TLSLITE_VERSION=0.8.2

python=$directory/tlslite
[ -x "$python/bin/python" ] ||
    { python3 -m venv "$python" && "$python/bin/pip" -q install "tlslite-ng==$TLSLITE_VERSION"; } ||
    rm -rf "$python"
if [ ! -x "$python/bin/python" ]; then
    skipped 'alerts of TLS (a Python with venv, and PyPI)'
    exit 0
fi

host=127.0.0.46
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=a.example \
    -keyout "$work/site.key" -out "$work/site.pem" 2>"$work/openssl.log" || {
    cat "$work/openssl.log" >&2
    exit 1
}
chmod 600 "$work/site.key"
cat >"$work/subak.toml" <<END
workers = 1
admin = false
[listener.web]
bind = "$host:18443"
tls = { certificates = [{ chain = "$work/site.pem", key = "$work/site.key" }] }
route = [{ respond = { status = 200, body = "hello" } }]
END
"$subak" serve --config "$work/subak.toml" 2>"$work/subak.log" &
processes+=($!)
servers=("subak=$host:18443")
PATH=$PATH:/usr/sbin
if command -v nginx >/dev/null; then
    cat >"$work/nginx.conf" <<END
worker_processes 1;
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    server {
        listen $host:18444 ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate $work/site.pem;
        ssl_certificate_key $work/site.key;
        location / { return 200 "hello"; }
    }
}
END
    nginx -c "$work/nginx.conf" -p "$work" 2>"$work/nginx.start" &
    processes+=($!)
    servers+=("nginx=$host:18444")
fi
answer() {
    for server in "${servers[@]}"; do
        curl -sk -o /dev/null "https://${server#*=}/" || return 1
    done
}
wait_until 10 answer || {
    cat "$work"/subak.log "$work"/nginx.start >&2
    exit 1
}
check 'alerts of TLS' "$python/bin/python" scripts/suites/alerts.py "${servers[@]}"
exit $failed
