#!/bin/bash
# Make a stand-in for debian:bookworm-slim where no image registry is reached: debian_stand_in.sh TAG
# It needs root, debootstrap and a Docker engine. The base of docker/vllm-cpu, by --base debian=TAG.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$work/root"
# An own certificate authority in front of the package index, where the machine has one.
cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
tar --create --directory "$work/root" . | docker import - "$1"
