#!/bin/bash
# Make the stand-in base image: make.sh PYTHON_3.12_PREFIX IMAGE_TAG. See README.md.
set -euo pipefail
python=$1 tag=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

debootstrap --variant=minbase --include=ca-certificates trixie "$work/root"

# An own certificate authority in front of the package index, where the machine has one.
cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"

# Python 3.12 laid under /usr, beside trixie's 3.13.
mkdir -p "$work/root/usr/lib" "$work/root/usr/include"
cp "$python/bin/python3.12" "$work/root/usr/bin/"
cp --recursive "$python/lib/python3.12" "$work/root/usr/lib/"
rm -rf "$work/root/usr/lib/python3.12/site-packages" "$work/root/usr/lib/python3.12/test"
cp --recursive "$python/include/python3.12" "$work/root/usr/include/"
find "$python/lib" -maxdepth 1 -name 'libpython3*.so*' -exec cp --no-dereference {} "$work/root/usr/lib/" \;

ca=/etc/ssl/certs/ca-certificates.crt
tar --create --directory "$work/root" . | docker import \
    --change "ENV PIP_CERT=$ca SSL_CERT_FILE=$ca REQUESTS_CA_BUNDLE=$ca" - "$tag-rootfs"
cd "$here"
DOCKER_BUILDKIT=1 docker build --network host --build-arg "BASE=$tag-rootfs" --tag "$tag" .
