#!/usr/bin/env bash
# HTTP/2, gRPC and WebSocket by other people's clients and servers:
#
#   scripts/suites/protocols.sh SUBAK DIRECTORY
#
# h2spec (Go): all of its generic, HTTP/2 and HPACK cases, in cleartext and by TLS.
# gRPC's interop client and server (Go): the cases that pass directly pass through Subak, in cleartext
# and by TLS, to endpoints in cleartext and by TLS. scripts/suites/websocket.py (wsproto and h2 of PyPI): conversations that come out through
# Subak as they do directly, by HTTP/1.1 and by an extended CONNECT, to an endpoint that speaks HTTP/1.1
# and to one that speaks HTTP/2, which is a second Subak before it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/suites/begin.sh

H2SPEC=github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
INTEROP=v1.85.0
# gRPC wants this Go or a newer one.
GO_MINOR=26

host=127.0.0.42
listener_clear=$host:18080
listener_h2=$host:18084
listener_tls=$host:18443
listener_outer=$host:18085
reader_address=$host:18083
echo_address=$host:18081
listener_onward=$host:18086
listener_tls_onward=$host:18444
# The interop server listens on every address.
interop_port=18082
interop_tls_port=18087

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext "subjectAltName=DNS:localhost,IP:$host" -addext 'basicConstraints=critical,CA:TRUE' \
    -keyout "$work/site.key" -out "$work/site.pem" 2>/dev/null
chmod 600 "$work/site.key"

cat >"$work/subak.toml" <<END
workers = 2

[listener.clear]
bind = "$listener_clear"
pool = "grpc"
[[listener.clear.route]]
path = "/chat"
pool = "echo"

# WebSockets that go on by HTTP/2.
[listener.outer]
bind = "$listener_outer"
pool = "inner"

# h2spec wants a connection that begins with nonsense closed without a word; where HTTP/1.1 is spoken
# too, it is answered 400.
[listener.h2]
bind = "$listener_h2"
protocols = ["h2"]
pool = "reader"

[listener.tls]
bind = "$listener_tls"
tls = { certificates = [{ chain = "$work/site.pem", key = "$work/site.key" }] }
pool = "grpc"
[[listener.tls.route]]
path = { exact = "/" }
pool = "reader"

# By TLS to the endpoint.
[listener.onward]
bind = "$listener_onward"
pool = "grpc_tls"

[listener.tls_onward]
bind = "$listener_tls_onward"
tls = { certificates = [{ chain = "$work/site.pem", key = "$work/site.key" }] }
pool = "grpc_tls"

[pool.reader]
endpoints = ["$reader_address"]

[pool.echo]
endpoints = ["$echo_address"]

[pool.inner]
protocol = "h2"
endpoints = ["$listener_clear"]

[pool.grpc]
protocol = "h2"
endpoints = ["127.0.0.1:$interop_port"]

[pool.grpc_tls]
protocol = "h2"
endpoints = ["127.0.0.1:$interop_tls_port"]
tls = { ca = "$work/site.pem", server_name = "localhost" }
END
"$subak" serve --config "$work/subak.toml" 2>"$work/subak.log" &
processes+=($!)
answers() { curl -s -o /dev/null "http://$listener_clear/"; }
wait_until 10 answers || {
    cat "$work/subak.log" >&2
    exit 1
}

# Go -----------------------------------------------------------------------------

has_go() {
    PATH=$PATH:/usr/local/go/bin
    command -v go >/dev/null || return 1
    local version
    version=$(GOTOOLCHAIN=local go env GOVERSION)
    version=${version#go1.}
    ((${version%%[!0-9]*} >= GO_MINOR))
}

# A Go program of a module, built once for each version.
built() {
    local name=$1 module=$2
    local marker=$directory/$name-${module##*@}
    [ -x "$marker" ] || {
        GOBIN=$work/bin go install "$module" >&2 || return 1
        mv "$work/bin/$(basename "${module%@*}")" "$marker"
    }
    ln -sf "$marker" "$directory/$name"
}

h2spec() {
    local out
    out=$("$directory/h2spec" "$@" -o 5) || true
    tail -n 2 <<<"$out"
    grep -q ' 0 skipped, 0 failed' <<<"$out" || {
        sed -n '/^Failures:/,$p' <<<"$out"
        return 1
    }
}

CASES='empty_unary large_unary client_streaming server_streaming ping_pong empty_stream
timeout_on_sleeping_server cancel_after_begin cancel_after_first_response status_code_and_message
special_status_message custom_metadata unimplemented_method unimplemented_service'

interop() { timeout 60 "$directory/interop-client" --test_case="$1" --server_host="$2" \
    --server_port="$3" "${@:4}" >"$work/interop.log" 2>&1; }
# Each case that passes directly has to pass with these options.
interop_all() {
    local passed=0 wrong=0
    for case in $CASES; do
        interop "$case" 127.0.0.1 $interop_port || {
            skipped "gRPC interop $case, which does not pass directly either"
            continue
        }
        if interop "$case" "$@"; then passed=$((passed + 1)); else
            wrong=1
            printf '%s:\n' "$case"
            tail -n 3 "$work/interop.log" | cut -c 1-300
        fi
    done
    echo "$passed cases passed"
    ((passed > 0)) || wrong=1
    return $wrong
}

if has_go && built h2spec "$H2SPEC"; then
    python3 scripts/suites/reader.py $host "${reader_address##*:}" 2>/dev/null &
    processes+=($!)
    reads() { curl -s -o /dev/null "http://$reader_address/"; }
    check 'h2spec: the endpoint is there' wait_until 10 reads
    check 'h2spec, cleartext' h2spec -h $host -p "${listener_h2##*:}"
    check 'h2spec, TLS' h2spec -h $host -p "${listener_tls##*:}" -t -k
else
    skipped "h2spec (Go 1.$GO_MINOR or newer, and its module proxy)"
fi
if has_go && built interop-client google.golang.org/grpc/interop/client@$INTEROP &&
    built interop-server google.golang.org/grpc/interop/server@$INTEROP; then
    "$directory/interop-server" --port=$interop_port >"$work/server.log" 2>&1 &
    processes+=($!)
    "$directory/interop-server" --port=$interop_tls_port --use_tls --tls_cert_file="$work/site.pem" \
        --tls_key_file="$work/site.key" >"$work/server-tls.log" 2>&1 &
    processes+=($!)
    by_tls=(--use_tls --ca_file="$work/site.pem" --use_test_ca --server_host_override=localhost)
    is_served_by_tls() { interop empty_unary 127.0.0.1 $interop_tls_port "${by_tls[@]}"; }
    is_served() { interop empty_unary 127.0.0.1 $interop_port; }
    check 'gRPC interop: the server is there' wait_until 10 is_served
    check 'gRPC interop, cleartext' interop_all $host "${listener_clear##*:}"
    check 'gRPC interop, TLS' interop_all $host "${listener_tls##*:}" "${by_tls[@]}"
    check 'gRPC interop: the server with TLS is there' wait_until 10 is_served_by_tls
    check 'gRPC interop, TLS to the endpoint' interop_all $host "${listener_onward##*:}"
    check 'gRPC interop, TLS on both sides' interop_all $host "${listener_tls_onward##*:}" "${by_tls[@]}"
else
    skipped "gRPC interop (Go 1.$GO_MINOR or newer, and its module proxy)"
fi

# WebSocket ----------------------------------------------------------------------

python=$directory/python-websocket
if [ ! -x "$python/bin/python" ] || ! "$python/bin/python" -c 'import wsproto, h2' 2>/dev/null; then
    python3 -m venv "$python" && "$python/bin/pip" -q install 'wsproto==1.3.*' 'h2==4.*' ||
        rm -rf "$python"
fi
if [ -x "$python/bin/python" ]; then
    "$python/bin/python" scripts/suites/websocket.py serve $host "${echo_address##*:}" &
    processes+=($!)
    echoes() { curl -s -o /dev/null "http://$echo_address/"; [ $? != 7 ]; }
    check 'WebSocket: the server is there' wait_until 10 echoes
    check 'WebSocket, byte for byte' "$python/bin/python" scripts/suites/websocket.py cases \
        "$echo_address" --http1 "$listener_clear" --http2 "$listener_clear"
    check 'WebSocket to an endpoint of HTTP/2' "$python/bin/python" scripts/suites/websocket.py cases \
        "$echo_address" --http1 "$listener_outer" --http2 "$listener_outer"
else
    skipped 'WebSocket (a Python with venv, and PyPI)'
fi
exit $failed
