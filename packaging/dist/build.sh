#!/bin/sh
# Makes everything that is given out of a binary that is there already: a tarball, a Debian package, an
# OCI image, and their checksums.
#
#   packaging/dist/build.sh target/release/subak target/dist
#
# It needs tar, gzip, dpkg-deb, binutils, cargo (for the licences of others) and CA certificates, no rights
# and no daemon; scripts/setup.sh dist installs what is missing. The same inputs give the same bytes: set
# SOURCE_DATE_EPOCH to the time of the commit (make dist does).
set -eu
export LC_ALL=C
umask 022

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=$(realpath "$1")
output=$2
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}
export SOURCE_DATE_EPOCH
mkdir -p "$output"
output=$(realpath "$output")

said() { "$binary" version --json | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
version=$(said version)
commit=$(said commit)
machine=$(said target | cut -d- -f1)
case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) echo "no name is known for images on $machine" >&2 && exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$output"/subak[-_]* "$output/SHA256SUMS"

put() { install -D -m "$1" "$2" "$3"; }
# A tar of what is below a directory that depends on nothing but names, modes and contents.
packed() { # DIRECTORY USER MEMBER…
    directory=$1
    user=$2
    shift 2
    tar --create --directory "$directory" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
        --owner="$user" --group="$user" --numeric-owner "$@" | gzip -9n
}

strip --strip-unneeded --remove-section=.comment --remove-section=.note -o "$work/subak" "$binary"
"$root/packaging/third-party.sh" >"$work/THIRD-PARTY"

# The tarball: laid out as below /usr/local ----------------------------------------

name=subak-$version
tree=$work/tar/$name
put 755 "$work/subak" "$tree/bin/subak"
mkdir -p "$tree/share/man/man1" "$tree/share/man/man5"
"$binary" man --directory "$tree/share/man/man1"
mv "$tree"/share/man/man1/*.5 "$tree/share/man/man5"
completions=$tree/share
mkdir -p "$completions/bash-completion/completions" "$completions/zsh/site-functions" \
    "$completions/fish/vendor_completions.d"
"$binary" completions bash >"$completions/bash-completion/completions/subak"
"$binary" completions zsh >"$completions/zsh/site-functions/_subak"
"$binary" completions fish >"$completions/fish/vendor_completions.d/subak.fish"
doc=$tree/share/doc/subak
for file in README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT; do put 644 "$root/$file" "$doc/$file"; done
put 644 "$work/THIRD-PARTY" "$doc/THIRD-PARTY"
(cd "$root" && find docs examples -type f \( -name '*.md' -o -name '*.toml' -o -name '*.json' \)) |
    while read -r file; do put 644 "$root/$file" "$doc/$file"; done
put 644 "$root/packaging/deb/subak.toml" "$tree/share/subak/subak.toml"
put 644 "$root/packaging/logrotate/subak" "$tree/share/subak/logrotate"
sed 's,/usr/bin/subak,/usr/local/bin/subak,' "$root/packaging/systemd/subak.service" >"$work/unit"
put 644 "$work/unit" "$tree/share/subak/subak.service"
packed "$work/tar" 0 "$name" >"$output/$name-$machine-linux-gnu.tar.gz"

# The Debian package -----------------------------------------------------------------

"$root/packaging/deb/build.sh" "$binary" "$output" >/dev/null

# The image --------------------------------------------------------------------------

"$here/image.sh" "$work" "$output/$name-$architecture.oci.tar" "$version" "$commit" "$architecture"

(cd "$output" && sha256sum subak[-_]* >SHA256SUMS)
(cd "$output" && ls -1 subak[-_]* SHA256SUMS)
