#!/bin/sh
# Does the unit do what it says, under systemd itself?
#
#   packaging/systemd/test.sh PACKAGE NEWER_PACKAGE [BASE]
#
# It needs root. A systemd of its own runs as process 1 of namespaces of its own (mounts, processes,
# network, control groups), on a layer above BASE: a Debian made by debootstrap --variant=minbase
# --include=adduser,systemd,curl, beside the package unless it is given. The packages are installed
# there; trial.sh, which runs as a unit, does the rest. Nothing is left of it.
#
# One directive is left out, because it makes device nodes and a sandbox may forbid that:
# PrivateDevices=. Control groups have to be of version 1 or of both versions: that is what is mounted.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${SUBAK_UNIT_TEST_INSIDE:-}" ]; then
    [ "$(id -u)" -eq 0 ] || { echo 'SKIPPED: the test of the unit needs root' >&2; exit 0; }
    [ -d /sys/fs/cgroup/systemd ] || { echo 'SKIPPED: the test of the unit needs control groups of version 1' >&2; exit 0; }
    package=$(realpath "$1")
    newer=$(realpath "$2")
    base=${3:-$(dirname "$package")/debian-systemd}
    if [ ! -e "$base/lib/systemd/systemd" ]; then
        command -v debootstrap >/dev/null || { echo 'SKIPPED: debootstrap is not installed' >&2; exit 0; }
        debootstrap --variant=minbase --include=adduser,systemd,curl "${SUITE:-bookworm}" "$base" >&2
    fi
    work=$(mktemp -d)
    mkdir "$work/mount" "$work/result"
    trap 'rm -rf "$work/result"; rmdir "$work/mount" "$work"' EXIT
    # Its end is its last act; the time limit is for a systemd that does not even begin.
    SUBAK_UNIT_TEST_INSIDE=yes timeout --signal=KILL 180 \
        unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child \
        "$0" "$package" "$newer" "$(realpath "$base")" "$work" >"$work/result/console" 2>&1 || true
    if [ ! -s "$work/result/log" ]; then
        cat "$work/result/console"
        echo 'FAILED: systemd did not begin' >&2
        exit 1
    fi
    cat "$work/result/log"
    grep -q '^all is well$' "$work/result/log"
    exit
fi

package=$1
newer=$2
base=$3
work=$4
mount --make-rprivate /
mount -t tmpfs tmpfs "$work/mount"
cd "$work/mount"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=$base,upperdir=upper,workdir=work" root
cd root
mkdir -p result old
mount --bind "$work/result" result
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
touch dev/console
ln -s /proc/self/fd dev/fd
ip link set lo up

cp "$package" root/one.deb
cp "$newer" root/two.deb
cp "$here/trial.sh" root/trial.sh
chroot . dpkg -i /root/one.deb
rm -rf etc/systemd/system/*.wants
mkdir -p run/systemd/system/subak.service.d
printf '[Service]\nPrivateDevices=no\n' >run/systemd/system/subak.service.d/devices.conf
printf '[Unit]\nRequires=trial.service\n' >run/systemd/system/trial.target
cat >run/systemd/system/trial.service <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
StandardOutput=append:/result/log
StandardError=append:/result/log
ExecStart=/bin/sh /root/trial.sh
ExecStopPost=/bin/systemctl --force --force poweroff
UNIT
# A change of root, not chroot: systemd makes mount namespaces of its own from here.
pivot_root . old
umount -l /old
mount --make-rshared /
exec /usr/bin/env -i container=other PATH=/usr/bin:/usr/sbin:/bin:/sbin \
    /lib/systemd/systemd --unit=trial.target
