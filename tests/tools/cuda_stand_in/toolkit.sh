#!/bin/bash
# Lay out /usr/local/cuda as NVIDIA's image does, from wheels. The libraries of mathematics are left
# out: only their headers are needed to compile.
set -euo pipefail
parts=nvcc,nvvm,crt,cccl,cudart,nvrtc,nvtx,profiler,nvjitlink,nvfatbin,nvptxcompiler,cuxxfilt,culibos
parts=$parts,nvml,cupti,cublas,cusparse,cusolver,cufft,curand
python3.12 -m venv /tmp/fetch
/tmp/fetch/bin/pip install --quiet --no-cache-dir --target /tmp/cuda "cuda-toolkit[$parts]==13.1.1"
/tmp/fetch/bin/pip download --quiet --no-cache-dir --no-deps --dest /tmp/triton triton==3.7.1

root=/tmp/cuda/nvidia/cu13
rm --force $root/lib/lib{cublas,cublasLt,nvblas,cusparse,cusolver,cusolverMg,cufft,cufftw,curand}*.so*
mv $root /usr/local/cuda-13.1
ln --symbolic cuda-13.1 /usr/local/cuda
cd /usr/local/cuda
mkdir -p targets/x86_64-linux
ln --symbolic lib lib64
ln --symbolic ../../include targets/x86_64-linux/include
ln --symbolic ../../lib targets/x86_64-linux/lib
# The wheels hold lib*.so.N alone; linking with -lcudart looks for libcudart.so.
for library in lib/*.so.*; do
    plain=${library%%.so.*}.so
    [ -e "$plain" ] || ln --symbolic "$(basename "$library")" "$plain"
done
# cuobjdump is in no CUDA wheel, but triton ships it.
python3.12 -m zipfile --extract /tmp/triton/triton-*.whl /tmp/triton/unpacked
install /tmp/triton/unpacked/triton/backends/nvidia/bin/cuobjdump bin/cuobjdump
rm -rf /tmp/fetch /tmp/cuda /tmp/triton
bin/nvcc --version
bin/cuobjdump --version
