#!/bin/sh
# Builds a Debian package of a binary that is there already.
#
#   packaging/deb/build.sh target/release/subak target/deb [REVISION]
#
# It needs dpkg-deb, binutils and gzip, which come with build-essential, cargo for the licences of others,
# and no rights. The same inputs give the same package: set SOURCE_DATE_EPOCH to the time of the commit (make deb does).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=$1
output=$2
revision=${3:-1}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}
export SOURCE_DATE_EPOCH
umask 022

version=$("$binary" version --json | sed -n 's/.*"version":"\([^"]*\)".*/\1/p')
architecture=$(dpkg --print-architecture)
full="$version-$revision"
mkdir -p "$output"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

# Files ------------------------------------------------------------------------

put() { install -D -m "$1" "$2" "$tree/$3"; }

put 755 "$binary" usr/bin/subak
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/subak"
put 644 "$here/subak.toml" etc/subak/subak.toml
put 644 "$root/packaging/logrotate/subak" etc/logrotate.d/subak
put 644 "$root/packaging/systemd/subak.service" lib/systemd/system/subak.service

pages=$tree/usr/share/man
mkdir -p "$pages/man1" "$pages/man5"
"$binary" man --directory "$pages/man1"
mv "$pages/man1"/*.5 "$pages/man5"
find "$pages" -type f -exec gzip -9n {} +

completions=$tree/usr/share
mkdir -p "$completions/bash-completion/completions" "$completions/zsh/vendor-completions" \
    "$completions/fish/vendor_completions.d"
"$binary" completions bash >"$completions/bash-completion/completions/subak"
"$binary" completions zsh >"$completions/zsh/vendor-completions/_subak"
"$binary" completions fish >"$completions/fish/vendor_completions.d/subak.fish"

doc=$tree/usr/share/doc/subak
mkdir -p "$doc"
(cd "$root" && find docs examples -type f \( -name '*.md' -o -name '*.toml' -o -name '*.json' \)) |
    while read -r file; do put 644 "$root/$file" "usr/share/doc/subak/$file"; done
put 644 "$here/lintian-overrides" usr/share/lintian/overrides/subak
put 644 "$here/copyright" usr/share/doc/subak/copyright
"$root/packaging/third-party.sh" | gzip -9nc >"$doc/THIRD-PARTY.gz"
gzip -9nc "$root/CHANGELOG.md" >"$doc/changelog.gz"
{
    echo "subak ($full) unstable; urgency=medium"
    echo
    echo "  * Release $version; see changelog.gz."
    echo
    echo " -- Subak developers <subak-lb@users.noreply.github.com>  $(date -Ru -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9nc >"$doc/changelog.Debian.gz"

# Control ----------------------------------------------------------------------

# The newest symbol of the C library decides which one is needed.
libc=$(objdump -T "$tree/usr/bin/subak" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
control=$tree/DEBIAN
mkdir "$control"
cat >"$control/control" <<CONTROL
Package: subak
Version: $full
Architecture: $architecture
Maintainer: Subak developers <subak-lb@users.noreply.github.com>
Installed-Size: $(du -k -s "$tree" | cut -f1)
Depends: adduser, init-system-helpers (>= 1.52), libc6 (>= $libc), libgcc-s1
Suggests: logrotate
Section: httpd
Priority: optional
Description: load balancer that can be explained
 Subak balances HTTP/1.1 and HTTP/2 requests over pools of endpoints, by an
 algorithm that is held to its formula by tests. It reloads without losing a
 request, shows what it does by an Admin API, and says why any request went
 where it went.
CONTROL
printf '/etc/%s\n' subak/subak.toml logrotate.d/subak >"$control/conffiles"
for script in postinst prerm postrm; do put 755 "$here/$script" "DEBIAN/$script"; done
(cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs md5sum) >"$control/md5sums"

find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
package=$output/subak_${full}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$package" >&2
echo "$package"
