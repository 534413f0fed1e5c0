#!/bin/sh
# Does the package install, start, stop, upgrade and purge as it should, on a bare Debian?
#
#   packaging/deb/test.sh PACKAGE NEWER_PACKAGE [BASE]
#
# It needs root. BASE is a directory with a minimal Debian (debootstrap --variant=minbase
# --include=adduser); without one it is made, once, beside the package. BASE itself is not changed: the
# test works on a layer above it, in mount, process and network namespaces of its own, and nothing is
# left of it.
#
# There is no systemd in it. The service is started as the unit would: by its ExecStart line, as its
# user, with its capabilities and directories; then as an init script would, as root.
set -eu

if [ -z "${SUBAK_DEB_TEST_INSIDE:-}" ]; then
    [ "$(id -u)" -eq 0 ] || { echo 'SKIPPED: the test of the package needs root' >&2; exit 0; }
    package=$(realpath "$1")
    newer=$(realpath "$2")
    base=${3:-$(dirname "$package")/debian}
    if [ ! -e "$base/usr/bin/dpkg" ]; then
        command -v debootstrap >/dev/null || { echo 'SKIPPED: debootstrap is not installed' >&2; exit 0; }
        debootstrap --variant=minbase --include=adduser "${SUITE:-bookworm}" "$base" >&2
    fi
    work=$(mktemp -d)
    trap 'rmdir "$work"' EXIT
    SUBAK_DEB_TEST_INSIDE=yes unshare --mount --pid --net --fork \
        "$0" "$package" "$newer" "$(realpath "$base")" "$work"
    exit
fi

package=$1
newer=$2
base=$3
# Everything is mounted here, in this namespace alone.
work=$4
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
root=$work/root
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount --bind /dev "$root/dev"
ip link set lo up
cp "$package" "$root/tmp/one.deb"
cp "$newer" "$root/tmp/two.deb"

inside() { LC_ALL=C chroot "$root" "$@"; }
quietly() { inside env DEBIAN_FRONTEND=noninteractive "$@" >"$work/said" 2>&1 || { cat "$work/said"; fail "$*"; }; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
step() { echo "ok: $*"; }
# Everything but what dpkg, adduser and the C library keep for themselves.
files() {
    inside find / -xdev -path /var/lib/dpkg -prune -o -path /var/log/dpkg.log -prune -o \
        -path /var/log/alternatives.log -prune -o -path /var/cache -prune -o -path /tmp -prune -o \
        -name 'passwd-' -prune -o -name 'group-' -prune -o -name 'shadow-' -prune -o \
        -name 'gshadow-' -prune -o -path /var/lib/systemd -prune -o -print | LC_ALL=C sort
    inside cat /etc/passwd /etc/group
}
pid=
wait_for() {
    tries=0
    until eval "$2"; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || fail "waited in vain until $1"
        sleep 0.1
    done
}
answers() { curl -fsS -o "$work/answer" http://127.0.0.1:8080/ 2>/dev/null; }
is_gone() { ! kill -0 "$pid" 2>/dev/null; }
stop() {
    kill -TERM "$pid"
    wait "$pid" || fail "it ended with status $?"
    wait_for 'it has ended' is_gone
}

files >"$work/before"

# Install ----------------------------------------------------------------------

quietly dpkg -i /tmp/one.deb
inside dpkg -V subak
step "installed: $(inside subak -V)"
inside subak check /etc/subak/subak.toml >/dev/null || fail 'the configuration has errors'
inside getent passwd subak | grep -q ':/nonexistent:/usr/sbin/nologin$' || fail 'the user'
[ -L "$root/etc/systemd/system/multi-user.target.wants/subak.service" ] || fail 'the unit is not enabled'
for file in usr/share/man/man1/subak-serve.1.gz usr/share/man/man5/subak.toml.5.gz \
    usr/share/bash-completion/completions/subak usr/share/doc/subak/copyright etc/logrotate.d/subak; do
    [ -s "$root/$file" ] || fail "there is no /$file"
done
[ "$(stat -c '%U %a' "$root/var/log/subak" | sed "s/^$(stat -c %U "$root/var/log/subak")/x/")" = 'x 750' ] ||
    fail 'the directory of logs'
step 'user, unit, directories, manual pages and completions are there'

# As the unit does -------------------------------------------------------------

unit=$root/lib/systemd/system/subak.service
start=$(sed -n 's/^ExecStart=//p' "$unit")
inside install -d -o subak -g subak -m 755 /run/subak
right=net_bind_service
# shellcheck disable=SC2086
LC_ALL=C chroot "$root" setpriv --reuid=subak --regid=subak --init-groups --no-new-privs \
    --inh-caps=-all,+$right --ambient-caps=-all,+$right --bounding-set=-all,+$right $start 2>"$work/log" &
pid=$!
wait_for 'it answers' answers
grep -q 'Subak is here' "$work/answer" || fail 'the welcome'
for set in CapPrm CapBnd; do
    grep -q "^$set:.0000000000000400$" "$root/proc/$pid/status" || fail "$set: $(grep $set "$root/proc/$pid/status")"
done
[ "$(inside stat -c '%U %a' /run/subak/admin.sock)" = 'subak 600' ] || fail 'the socket of the Admin API'
sed -i 's/127.0.0.1:8080/127.0.0.1:80/' "$root/etc/subak/subak.toml"
reload=$(sed -n 's/^ExecReload=//p' "$unit" | head -n 1)
# shellcheck disable=SC2086
inside setpriv --reuid=subak --regid=subak --init-groups $reload >/dev/null || fail "$reload"
kill -HUP $pid
wait_for 'it answers on the new low port' 'curl -fsS -o /dev/null http://127.0.0.1:80/ 2>/dev/null'
stop
[ ! -e "$root/run/subak/subak.pid" ] || fail 'the pid file is left'
step 'as the unit: starts, serves, binds a low port at a reload, stops'
sed -i 's/127.0.0.1:80"/127.0.0.1:8080"/' "$root/etc/subak/subak.toml"

# As an init script does -------------------------------------------------------

rm -rf "$root/run/subak"
LC_ALL=C chroot "$root" subak serve 2>"$work/log" &
pid=$!
wait_for 'it answers' answers
[ "$(cat "$root/run/subak/subak.pid")" -gt 0 ] || fail 'the pid file'
owner=$(inside id -u subak)
grep -q "^Uid:.$owner.$owner.$owner.$owner$" "$root/proc/$pid/status" || fail 'it is still root'
stop
step 'as root: becomes its user, serves, stops'

# Upgrade, remove, purge -------------------------------------------------------

echo '# mine' >>"$root/etc/subak/subak.toml"
echo line >"$root/var/log/subak/access.log"
quietly dpkg --force-confold -i /tmp/two.deb
grep -q '^# mine$' "$root/etc/subak/subak.toml" || fail 'the upgrade has changed the configuration'
[ -s "$root/var/log/subak/access.log" ] || fail 'the upgrade has removed a log'
step "upgraded to $(inside dpkg-query -W -f '${Version}' subak), configuration and logs kept"
quietly dpkg -r subak
[ ! -e "$root/usr/bin/subak" ] || fail 'the program is left'
grep -q '^# mine$' "$root/etc/subak/subak.toml" || fail 'removing has removed the configuration'
quietly dpkg -i /tmp/one.deb
quietly dpkg -P subak
files >"$work/after"
diff "$work/before" "$work/after" || fail 'something is left after purging'
step 'removed, installed again, purged: nothing is left'
