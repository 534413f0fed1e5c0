#!/bin/sh
# Prints what `subak top` shows before, during and after `ab -n 12000 -c 10` over four endpoints with
# round_robin: the pictures in docs/top.md.
#
#   scripts/capture-top.sh target/release/subak
#
# Wants tmux, ab and nginx (as the endpoints). Everything runs on 127.18.0.x and ends with it.
set -eu

subak=$(realpath "${1:?the binary: target/release/subak}")
for tool in tmux ab nginx; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "$tool" >/dev/null || { echo "wants $tool" >&2; exit 1; }
done
nginx=$(PATH="$PATH:/usr/sbin:/sbin" command -v nginx)
columns=${COLUMNS_SHOWN:-80}
work=$(mktemp -d)
server=''
end() {
    tmux -L subak-capture kill-server 2>/dev/null || true
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ ! -s "$work/nginx.pid" ] || kill "$(cat "$work/nginx.pid")" 2>/dev/null || true
    sleep 0.3
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

{
    echo "pid $work/nginx.pid; error_log $work/nginx.log; worker_processes 1;"
    echo "events {} http { access_log off;"
    for body in client_body proxy fastcgi uwsgi scgi; do echo "${body}_temp_path $work/$body;"; done
    for n in 1 2 3 4; do
        echo "server { listen 127.18.0.$n:8080; location / { return 200 \"endpoint $n\"; } }"
    done
    echo "}"
} >"$work/nginx.conf"
"$nginx" -c "$work/nginx.conf" -e "$work/nginx.log"

cat >"$work/subak.toml" <<EOF
admin = { socket = "$work/admin.sock" }

[listener.web]
bind = "127.18.0.10:8080"
pool = "app"

[pool.app]
balance = "round_robin"
endpoints = ["127.18.0.1:8080", "127.18.0.2:8080", "127.18.0.3:8080", "127.18.0.4:8080"]
EOF
"$subak" serve --config "$work/subak.toml" 2>"$work/subak.log" &
server=$!
for _ in $(seq 100); do [ ! -S "$work/admin.sock" ] || break; sleep 0.05; done

tmux -L subak-capture -f /dev/null new-session -d -x "$columns" -y 14 \
    "LC_ALL=C.UTF-8 '$subak' top --interval 200ms --socket '$work/admin.sock'"
picture() {
    echo "--- $1"
    tmux -L subak-capture capture-pane -p
}
sleep 1
picture 'before'
ab -q -n 12000 -c 10 http://127.18.0.10:8080/ >"$work/ab.txt" 2>&1 &
load=$!
# While it runs: when the first thousands are there.
for _ in $(seq 200); do
    hits=$(tmux -L subak-capture capture-pane -p | sed -n 's/^ *127.18.0.1:8080 *1 *\([0-9,]*\) .*/\1/p' | tr -d ,)
    [ "${hits:-0}" -lt 1000 ] || break
    sleep 0.02
done
picture 'during'
wait $load
sleep 1
picture 'after'
grep -E 'Complete requests|Failed requests' "$work/ab.txt"
