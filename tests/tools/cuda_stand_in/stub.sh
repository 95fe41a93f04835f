#!/bin/bash
# Build what NVIDIA's image has as lib64/stubs/libcuda.so: every function of the driver that cuda.h
# names, each returning CUDA_ERROR_STUB_LIBRARY (34). An empty library would not do: the linker drops
# one that defines nothing, and the first import then lacks its symbols.
set -euo pipefail
cuda=/usr/local/cuda
work=$(mktemp --directory)
printf '#include <%s>\n' cuda.h cudaProfiler.h cudaTypedefs.h > "$work/all.c"
{
    gcc -E -P -I$cuda/include "$work/all.c" | tr '\n' ' ' | grep -oE 'CUresult +cu[A-Za-z0-9_]+ *\(' \
        | sed -E 's/CUresult +//; s/ *\(//'
    # Versioned names, which macros hide from the line above.
    grep -ohE '\bcu[A-Z][A-Za-z0-9]+_(v[0-9]+|ptsz|ptds|v[0-9]_ptsz|v[0-9]_ptds)\b' \
        $cuda/include/cuda.h $cuda/include/cudaTypedefs.h
} | sort --unique | sed 's/.*/int &(void) { return 34; }/' > "$work/stub.c"
mkdir -p $cuda/lib64/stubs
gcc -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -o $cuda/lib64/stubs/libcuda.so "$work/stub.c"
wc --lines < "$work/stub.c"
rm -r "$work"
