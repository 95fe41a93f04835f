#!/bin/bash
# Fetch one sdist by hash and unpack it; print the folder.
#   fetch.sh "deepinfer-ep==2.5.0 --hash=sha256:..."
set -euo pipefail
folder=/opt/source/sdist
mkdir -p "$folder"
echo "$1" > "$folder/wanted.txt"
# pip asks each sdist for its metadata on the way: without these two variables deepinfer-gemm calls
# itself by another name, and deepinfer-flashmla looks for a GPU's compiler.
DG_PACKAGE_NAME=deepinfer-gemm FLASH_MLA_SKIP_CUDA_BUILD=1 \
    pip download --no-deps --no-build-isolation --no-binary :all: --require-hashes \
    --dest "$folder" --requirement "$folder/wanted.txt" >&2
tar --extract --gzip --file "$folder"/*.tar.gz --directory "$folder"
rm "$folder"/*.tar.gz
echo "$folder"/*/
