#!/bin/sh
# Writes an OCI image of the stripped binary WORK/subak: the binary, the libraries that it is linked to, CA
# certificates and one user. There is no shell in it. Called by build.sh.
#
#   packaging/dist/image.sh WORK IMAGE.oci.tar VERSION COMMIT ARCHITECTURE
#
# The archive is an OCI image layout with the manifest.json of `docker save` beside it: podman, skopeo,
# containerd, umoci and docker of every age read it.
set -eu
export LC_ALL=C
umask 022

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$1
image=$2
version=$3
commit=$4
architecture=$5
user=10001

packed() { # DIRECTORY USER MEMBER…: as in build.sh, not compressed
    directory=$1
    owner=$2
    shift 2
    tar --create --directory "$directory" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" \
        --owner="$owner" --group="$owner" --numeric-owner "$@"
}
sum() { sha256sum <"$1" | cut -c1-64; }

# What root owns: everything that is only read.
files=$work/image/files
put() { install -D -m "$1" "$2" "$files$3"; }
put 755 "$work/subak" /usr/bin/subak
# "libc.so.6 => /lib/…/libc.so.6 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)"
ldd "$work/subak" | sed -n 's/.*=> *\(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' | sort -u |
    while read -r library; do put 755 "$(realpath "$library")" "$library"; done
put 644 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
for package in libc6 libgcc-s1; do
    [ ! -e "/usr/share/doc/$package/copyright" ] ||
        put 644 "$(realpath "/usr/share/doc/$package/copyright")" "/usr/share/doc/$package/copyright"
done
for licence in LICENSE-APACHE LICENSE-MIT; do put 644 "$root/$licence" "/usr/share/doc/subak/$licence"; done
put 644 "$work/THIRD-PARTY" /usr/share/doc/subak/THIRD-PARTY
put 644 "$here/subak.toml" /etc/subak/subak.toml
printf 'root:x:0:0:root:/:/sbin/nologin\nsubak:x:%s:%s:subak:/var/lib/subak:/sbin/nologin\n' $user $user >"$work/passwd"
printf 'root:x:0:\nsubak:x:%s:\n' $user >"$work/group"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$work/nsswitch"
put 644 "$work/passwd" /etc/passwd
put 644 "$work/group" /etc/group
put 644 "$work/nsswitch" /etc/nsswitch.conf
mkdir -p "$files/proc" "$files/dev" "$files/sys"

# What the process may write: its Admin socket, its certificates, its logs.
state=$work/image/state
mkdir -p "$state/run/subak" "$state/var/lib/subak" "$state/var/log/subak"
chmod 750 "$state/run/subak" "$state/var/lib/subak" "$state/var/log/subak"

layout=$work/image/layout
blobs=$layout/blobs/sha256
mkdir -p "$blobs"
# Adds a file as a blob; prints its digest.
blob() {
    digest=$(sum "$1")
    mv "$1" "$blobs/$digest"
    echo "$digest"
}
size() { wc -c <"$blobs/$1" | tr -d ' '; }

(cd "$files" && packed . 0 -- *) >"$work/one.tar"
(cd "$state" && packed . $user run/subak var/lib/subak var/log/subak) >"$work/two.tar"
one_whole=$(sum "$work/one.tar")
two_whole=$(sum "$work/two.tar")
gzip -9n "$work/one.tar" "$work/two.tar"
one=$(blob "$work/one.tar.gz")
two=$(blob "$work/two.tar.gz")

created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
cat >"$work/config.json" <<JSON
{"created":"$created","architecture":"$architecture","os":"linux","config":{"User":"$user:$user","ExposedPorts":{"8080/tcp":{}},"Env":["PATH=/usr/bin","SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],"Entrypoint":["/usr/bin/subak"],"Cmd":["serve","--config","/etc/subak/subak.toml"],"WorkingDir":"/var/lib/subak","StopSignal":"SIGTERM","Labels":{"org.opencontainers.image.title":"subak","org.opencontainers.image.description":"load balancer","org.opencontainers.image.version":"$version","org.opencontainers.image.revision":"$commit","org.opencontainers.image.licenses":"Apache-2.0 OR MIT"}},"rootfs":{"type":"layers","diff_ids":["sha256:$one_whole","sha256:$two_whole"]},"history":[{"created":"$created","comment":"subak $version"},{"created":"$created","comment":"directories that it writes"}]}
JSON
config=$(blob "$work/config.json")
layer='application/vnd.oci.image.layer.v1.tar+gzip'
cat >"$work/manifest.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$(size "$config")},"layers":[{"mediaType":"$layer","digest":"sha256:$one","size":$(size "$one")},{"mediaType":"$layer","digest":"sha256:$two","size":$(size "$two")}]}
JSON
manifest=$(blob "$work/manifest.json")
cat >"$layout/index.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$(size "$manifest"),"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"$version","io.containerd.image.name":"localhost/subak:$version"}}]}
JSON
printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
cat >"$layout/manifest.json" <<JSON
[{"Config":"blobs/sha256/$config","RepoTags":["localhost/subak:$version"],"Layers":["blobs/sha256/$one","blobs/sha256/$two"]}]
JSON
packed "$layout" 0 blobs index.json manifest.json oci-layout >"$image"
