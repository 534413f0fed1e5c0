#!/bin/sh
# Installs what is missing, and nothing else.
#
#   scripts/setup.sh build    a C compiler and the pinned Rust toolchain
#   scripts/setup.sh test     the same, and what end-to-end tests call
#   scripts/setup.sh suites   the same, and other people's checks of metrics and the Admin API
#   scripts/setup.sh bench    the same, and what Subak is measured against
#   scripts/setup.sh papers   the same, and what the experiments of papers call; k6 where Go can build it
#   scripts/setup.sh dist     the same, and what packages and images are made with
#   scripts/setup.sh deb      the same, and what tries the Debian package
#
# Debian's packages come from apt. Rust is the machine's own where it is new enough;
# otherwise rustup and the toolchain named in rust-toolchain.toml come from Rust's
# distribution site. With nothing to do it takes a fraction of a second, asks no
# network and needs no rights. Services that arrive with a package are not started.
set -eu

cd "$(dirname "$0")/.."
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
PATH="$CARGO_HOME/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export CARGO_HOME PATH

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# Packages ---------------------------------------------------------------------

# What each purpose needs, as COMMAND:PACKAGE. Looking for the command leaves alone
# what somebody installed in another way.
needed_for() {
    echo 'curl:curl'
    case $1 in
    build) ;;
    test) echo 'nginx:nginx haproxy:haproxy ab:apache2-utils h2load:nghttp2-client ip:iproute2 openssl:openssl nft:nftables ps:procps groff:groff-base setpriv:util-linux nsd:nsd' ;;
    suites) echo 'promtool:prometheus python3:python3-venv openssl:openssl nginx:nginx haproxy:haproxy ip:iproute2 nft:nftables unshare:util-linux' ;;
    bench) echo 'nginx:nginx haproxy:haproxy h2load:nghttp2-client ab:apache2-utils wrk:wrk' ;;
    papers) echo 'nginx:nginx haproxy:haproxy h2load:nghttp2-client ab:apache2-utils ip:iproute2 unshare:util-linux openssl:openssl' ;;
    dist) echo 'tar:tar gzip:gzip dpkg-deb:dpkg objdump:binutils strip:binutils unshare:util-linux' ;;
    deb) echo 'debootstrap:debootstrap ip:iproute2 setpriv:util-linux objdump:binutils' ;;
    *) fail "there is no set-up for '$1'; there is build, test, suites, bench, papers, dist and deb" ;;
    esac
}

missing_packages() {
    has cc && echo 'int main(void){return 0;}' | cc -xc - -o /dev/null 2>/dev/null ||
        echo build-essential
    # Where certificates come from elsewhere, curl is told so by these.
    [ -n "${SSL_CERT_FILE:-}${SSL_CERT_DIR:-}" ] || [ -s /etc/ssl/certs/ca-certificates.crt ] ||
        echo ca-certificates
    for pair in $(needed_for "$1"); do
        has "${pair%%:*}" || echo "${pair#*:}"
    done
}

install_packages() {
    say "installing with apt: $*"
    has apt-get || fail "this is not Debian or one of its kin (no apt-get); please install: $*"
    if [ "$(id -u)" -eq 0 ]; then
        as_root=''
    elif has sudo; then
        as_root='sudo --preserve-env=http_proxy,https_proxy,no_proxy'
    else
        fail "please run 'apt-get install $*' as root: this is not root, and there is no sudo"
    fi
    # Debian starts a service as soon as it is installed; nginx would take port 80.
    # A policy of 101 forbids that while we install.
    policy=/usr/sbin/policy-rc.d
    if [ -e $policy ]; then
        $as_root mv $policy $policy.kept
    fi
    trap '$as_root rm -f $policy; if [ -e $policy.kept ]; then $as_root mv $policy.kept $policy; fi' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
    $as_root chmod 755 $policy
    wait_for_lock='-o DPkg::Lock::Timeout=300'
    $as_root apt-get $wait_for_lock -q update >&2
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get $wait_for_lock -q install -y --no-install-recommends "$@" >&2
    # They are here to be called by tests, not to start with the machine.
    for service in nginx haproxy nsd prometheus; do
        case " $* " in *" $service "*) $as_root update-rc.d $service disable >&2 || true ;; esac
    done
}

# Rust -------------------------------------------------------------------------

from_toolchain_file() { sed -n "s/^$1 *= *//p" rust-toolchain.toml | tr -d '[]",'; }
channel=$(from_toolchain_file channel)
components=$(from_toolchain_file components)
targets=$(from_toolchain_file targets)

# True when this rustc is at least the pinned release and has all that is named.
machine_rust_will_do() {
    has cargo && has rustc && has cargo-clippy && has rustfmt || return 1
    here=$(rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
    [ -n "$here" ] || return 1
    [ "$(printf '%s\n%s\n' "$channel" "$here" | sort -V | head -n 1)" = "$channel" ] || return 1
    for target in $targets; do
        [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || return 1
    done
}

install_rustup() {
    case $(uname -m) in
    x86_64 | aarch64) host="$(uname -m)-unknown-linux-gnu" ;;
    *) fail "no Rust for $(uname -m) is known here; please install Rust $channel or newer" ;;
    esac
    say "fetching rustup for $host"
    fetched=$(mktemp -d)
    site="https://static.rust-lang.org/rustup/dist/$host"
    for file in rustup-init rustup-init.sha256; do
        curl -fsS --retry 3 --proto '=https' --tlsv1.2 -o "$fetched/$file" "$site/$file" ||
            fail "cannot fetch $site/$file"
    done
    # The published sum names a path of its own; only the digest counts.
    echo "$(cut -d' ' -f1 "$fetched/rustup-init.sha256")  $fetched/rustup-init" | sha256sum -c --quiet - ||
        fail "rustup-init is not what its published checksum says"
    chmod +x "$fetched/rustup-init"
    "$fetched/rustup-init" -y -q --no-modify-path --profile minimal --default-toolchain none >&2
    rm -r "$fetched"
}

# Installs the toolchain with all that rust-toolchain.toml names: rustup's automatic
# installation may be switched off (RUSTUP_AUTO_INSTALL=0), and its moment is a bad one.
install_toolchain() {
    toolchain=$(rustup toolchain list | sed -n "s/^\($channel[^ ]*\).*/\1/p" | head -n 1)
    if [ -n "$toolchain" ]; then
        there=$(rustup component list --toolchain "$toolchain" --installed
            rustup target list --toolchain "$toolchain" --installed)
        missing=''
        for name in $components $targets; do
            echo "$there" | grep -q "^$name" || missing="$missing $name"
        done
        [ -n "$missing" ] || return 0
        say "Rust $channel lacks$missing"
    fi
    say "installing Rust $channel"
    set -- "$channel" --profile minimal --no-self-update
    for component in $components; do set -- "$@" --component "$component"; done
    for target in $targets; do set -- "$@" --target "$target"; done
    rustup toolchain install "$@" >&2
}

# k6 ---------------------------------------------------------------------------

K6=go.k6.io/k6@v1.8.1

# Built from its module where Go is new enough; else those who want it say that it is missing.
install_k6() {
    PATH=$PATH:/usr/local/go/bin:$HOME/go/bin
    ! has k6 || return 0
    if ! has go; then
        say "no k6: there is no Go to build it with (1.25 or newer); what needs it will say so"
        return 0
    fi
    say "building k6"
    GOBIN=$HOME/go/bin go install "$K6" >&2 ||
        say "no k6: this Go could not build it (it takes 1.25 or newer, and the module proxy)"
}

# ------------------------------------------------------------------------------

purpose=${1:-build}
needed_for "$purpose" >/dev/null
packages=$(missing_packages "$purpose")
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    install_packages $packages
fi
if has rustup; then
    install_toolchain
elif ! machine_rust_will_do; then
    install_rustup
    install_toolchain
fi
[ "$purpose" != papers ] || install_k6
