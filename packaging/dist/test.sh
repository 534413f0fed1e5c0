#!/bin/sh
# Is what packaging/dist/build.sh makes whole, and the same each time?
#
#   packaging/dist/test.sh target/release/subak [DIRECTORY]
#
# It builds twice, compares every byte, checks the sums, runs the tarball's binary, and runs that of the
# unpacked image in a chroot without anything else in it. The chroot needs root or user namespaces.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
export SOURCE_DATE_EPOCH=1767225600
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
step() { echo "ok: $*"; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

"$here/build.sh" "$binary" "$work/one" >"$work/names"
# Other umask, other order of files in the directory, other time.
(umask 077 && "$here/build.sh" "$binary" "$work/two" >/dev/null)
diff -r "$work/one" "$work/two" || fail 'two builds of one binary differ'
step 'two builds of one binary are the same'
(cd "$work/one" && sha256sum --check --quiet SHA256SUMS) || fail 'the checksums do not hold'
for kind in .tar.gz .deb .oci.tar SHA256SUMS; do grep -q "$kind\$" "$work/names" || fail "there is no $kind"; done
step "there are $(tr '\n' ' ' <"$work/names")"

version=$("$binary" version --json | sed -n 's/.*"version":"\([^"]*\)".*/\1/p')
mkdir "$work/tar"
tar --extract --directory "$work/tar" --strip-components=1 --file "$work"/one/*.tar.gz
"$work/tar/bin/subak" --version | grep -q "^subak $version" || fail 'the binary of the tarball does not run'
"$work/tar/bin/subak" check "$work/tar/share/subak/subak.toml" >/dev/null || fail 'the example is refused'
for file in share/man/man1/subak.1 share/man/man5/subak.toml.5 share/bash-completion/completions/subak \
    share/zsh/site-functions/_subak share/doc/subak/LICENSE-MIT share/doc/subak/THIRD-PARTY \
    share/doc/subak/docs/install.md share/subak/subak.service; do
    [ -s "$work/tar/$file" ] || fail "the tarball has no $file"
done
step 'the tarball is whole'

# As a registry's client would: the index leads to the manifest, that to configuration and layers.
mkdir "$work/oci" "$work/root"
tar --extract --directory "$work/oci" --file "$work"/one/*.oci.tar
digests() { grep -o '"digest":"sha256:[0-9a-f]*"' "$1" | grep -o '[0-9a-f]\{64\}'; }
manifest=$work/oci/blobs/sha256/$(digests "$work/oci/index.json")
set -- $(digests "$manifest")
config=$work/oci/blobs/sha256/$1
shift
for layer; do
    [ "$(sha256sum <"$work/oci/blobs/sha256/$layer" | cut -c1-64)" = "$layer" ] || fail "layer $layer is another"
    whole=$(gzip -dc "$work/oci/blobs/sha256/$layer" | sha256sum | cut -c1-64)
    grep -q "sha256:$whole" "$config" || fail "the configuration does not know layer $layer"
    tar --extract --no-same-owner --directory "$work/root" --file "$work/oci/blobs/sha256/$layer" --gzip
done
step 'the image is whole'

if [ "$(id -u)" -eq 0 ]; then inside="chroot $work/root"; else inside="unshare --map-root-user chroot $work/root"; fi
$inside /usr/bin/subak --version | grep -q "^subak $version" || fail 'the binary of the image does not run'
$inside /usr/bin/subak check /etc/subak/subak.toml >/dev/null || fail 'the configuration of the image is refused'
step 'the binary of the image runs with nothing but the image'
