# Runs under the systemd of test.sh: starts, reloads, hangs, upgrades and stops the service, and says
# what came of it.
set -eu

fail() {
    echo "FAILED: $*"
    systemctl --no-pager --lines=20 status subak || true
    journalctl --no-pager -n 20 -u subak || true
    exit 1
}
step() { echo "ok: $*"; }
of() { systemctl show --property="$1" --value subak; }
answers() { [ "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$1/" 2>/dev/null)" = 200 ]; }
wait_for() {
    tries=0
    until eval "$2"; do
        tries=$((tries + 1))
        [ $tries -le 150 ] || fail "waited in vain until $1"
        sleep 0.1
    done
}
file=/etc/subak/subak.toml

systemctl start systemd-journald.socket systemd-journald.service
systemctl start subak || fail 'it does not start'
answers 8080 || fail 'it is said to have started and does not answer'
step 'it answers as soon as systemctl start is done'

pid=$(of MainPID)
user=$(id -u subak)
grep -q "^Uid:.$user.$user.$user.$user\$" "/proc/$pid/status" || fail 'its user'
grep -q '^CapPrm:.0000000000000400$' "/proc/$pid/status" || fail 'its capabilities'
grep -q '^Seccomp:.2$' "/proc/$pid/status" || fail 'its filter of system calls'
[ "$(stat -c '%U %a' /run/subak/admin.sock)" = 'subak 600' ] || fail 'its Admin socket'
of StatusText | grep -q '^generation 1, ' || fail "its status: $(of StatusText)"
step 'it is an ordinary user with one capability and a filter'

sed -i 's/127.0.0.1:8080/127.0.0.1:80/' $file
systemctl reload subak || fail 'it does not reload'
wait_for 'it answers on the new low port' 'answers 80'
wait_for 'its status says so' 'of StatusText | grep -q "^generation 2, "'
echo 'wrokers = 1' >>$file
! systemctl reload subak 2>/dev/null || fail 'a reload with a wrong file is said to be well'
journalctl -u subak --no-pager | grep -q 'unknown key `wrokers`' || fail 'the journal does not say what is wrong'
answers 80 || fail 'a wrong file has ended it'
sed -i '$d' $file
step 'it reloads, and a wrong file makes systemctl reload fail and changes nothing'

mkdir -p /run/systemd/system/subak.service.d
printf '[Service]\nWatchdogSec=2s\n' >/run/systemd/system/subak.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart subak
pid=$(of MainPID)
sleep 5
[ "$(of NRestarts) $(of MainPID)" = "0 $pid" ] || fail 'the watchdog has ended one that is well'
kill -STOP "$pid"
wait_for 'the watchdog starts it anew' '[ "$(of NRestarts)" = 1 ] && answers 80'
rm /run/systemd/system/subak.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart subak
step 'the watchdog leaves it alone for 5 s of WatchdogSec=2s, and starts one that hangs anew'

pid=$(of MainPID)
dpkg -i /root/two.deb >/dev/null
[ "$(of ActiveState)" = active ] && [ "$(of MainPID)" != "$pid" ] || fail 'the upgrade has not restarted it'
systemctl stop subak
[ "$(of Result) $(of ActiveState)" = 'success inactive' ] || fail 'its end'
[ ! -e /run/subak ] || fail '/run/subak is left'
step 'an upgrade restarts it, and it stops with success'

echo 'wrokers = 1' >>$file
! systemctl start subak 2>/dev/null || fail 'it starts with a wrong file'
sleep 3
[ "$(of ActiveState) $(of ExecMainStatus) $(of NRestarts)" = 'failed 2 0' ] || fail 'it is tried again'
sed -i '$d' $file
systemctl reset-failed subak
systemctl start subak
dpkg -P subak >/dev/null
[ -z "$(pidof subak || true)" ] && [ ! -e /etc/subak ] && [ ! -e /run/subak ] || fail 'purging has left something'
step 'a wrong file is not tried again, and purging ends a running service'
echo 'all is well'
