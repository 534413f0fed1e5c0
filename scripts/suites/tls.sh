#!/usr/bin/env bash
# What sslyze finds at a listener with the defaults, held against Mozilla's recommendation
# "intermediate"; and with `profile = "modern"`, against "modern":
#
#   scripts/suites/tls.sh SUBAK DIRECTORY
#
# sslyze wants a chain that it can trust: the certificate is signed by an authority made for this run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/suites/begin.sh

SSLYZE_VERSION=6.3.1

python=$directory/sslyze
[ -x "$python/bin/sslyze" ] ||
    { python3 -m venv "$python" && "$python/bin/pip" -q install "sslyze==$SSLYZE_VERSION"; } ||
    rm -rf "$python"
if [ ! -x "$python/bin/sslyze" ]; then
    skipped 'sslyze (a Python with venv, and PyPI)'
    exit 0
fi

host=127.0.0.44
name=site.test
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
        -subj '/CN=authority of this run' -addext keyUsage=critical,keyCertSign,cRLSign \
        -keyout "$work/ca.key" -out "$work/ca.pem"
}
# One certificate for the name by each kind of key.
site() {
    local kind=$1
    shift
    openssl req -newkey "$@" -nodes -subj "/CN=$name" -keyout "$work/$kind.key" -out "$work/$kind.csr"
    openssl x509 -req -in "$work/$kind.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 30 \
        -extfile <(printf '%s\n' "subjectAltName=DNS:$name" extendedKeyUsage=serverAuth \
            keyUsage=digitalSignature authorityKeyIdentifier=keyid) -out "$work/$kind.pem"
    chmod 600 "$work/$kind.key"
}
{ authority && site ecdsa ec -pkeyopt ec_paramgen_curve:P-256 && site rsa rsa:2048; } 2>"$work/openssl.log" || {
    cat "$work/openssl.log" >&2
    exit 1
}

listener() {
    cat <<END
[listener.$1]
bind = "$host:$2"
tls = { certificates = [$(certificates)]$3 }
route = [{ respond = { status = 200, body = "$1" } }]
END
}
certificates() {
    for kind in ecdsa rsa; do
        printf '{ chain = "%s", key = "%s" }, ' "$work/$kind.pem" "$work/$kind.key"
    done
}
{
    printf 'workers = 1\nadmin = false\n'
    listener default 18443 ''
    listener modern 18444 ', profile = "modern"'
} >"$work/subak.toml"
"$subak" serve --config "$work/subak.toml" 2>"$work/subak.log" &
processes+=($!)
answers() {
    curl -sS -o /dev/null --cacert "$work/ca.pem" --resolve "$name:18443:$host" "https://$name:18443/" \
        2>/dev/null
}
wait_until 10 answers || {
    cat "$work/subak.log" >&2
    exit 1
}

# sslyze ends with status 0 also when it could not scan: what it says has to be there too.
complies() {
    local port=$1 profile=$2
    "$python/bin/sslyze" --mozilla_config "$profile" --certinfo --certinfo_ca_file "$work/ca.pem" \
        "$name:$port{$host}" >"$work/sslyze.log" 2>&1 || true
    sed -n '/COMPLIANCE AGAINST/,$p' "$work/sslyze.log"
    grep -q ": OK - Compliant" "$work/sslyze.log" || {
        cat "$work/sslyze.log" >&2
        return 1
    }
}
check 'sslyze: the defaults are "intermediate"' complies 18443 intermediate
check 'sslyze: profile = "modern"' complies 18444 modern
exit $failed
