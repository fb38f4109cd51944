# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# kernels.sh - the kernels for CUDA as NVIDIA's compiler makes them: for which devices, and what each takes of one.

# Compute capability 8.0 and 9.0 as machine code, and the last one as PTX for what comes after it.
readonly kernels_for=(-gencode 'arch=compute_80,code=sm_80' -gencode 'arch=compute_90,code=sm_90'
    -gencode 'arch=compute_90,code=compute_90')

# With 256 threads a block, a multiprocessor has room for two blocks of so many registers, and for four of the half.
readonly kernels_registers_max=128 kernels_shared_max=49152

# What a program asks of the library before it calls it: kernel.h, in short.
kernels_sum() { sha256sum inference/kernel/include/weir/inference/kernel/kernel.h | cut -c 1-16; }

# Compiles and links all of them, by a toolkit, into a folder; what the assembler says of them is in its ptxas.log.
kernels_compile() { # TOOLKIT FOLDER
    local source objects=()
    rm -rf "$2"
    mkdir -p "$2"
    for source in inference/kernel/cuda/*.cu; do
        objects+=("$2/$(basename "$source" .cu).o")
        "$1/bin/nvcc" -std=c++17 -O3 "${kernels_for[@]}" -Xptxas -v -Werror all-warnings \
            -Xcompiler '-fPIC,-Wall,-Wextra,-Werror' -Iinference/kernel/cuda -Iinference/kernel/include \
            -Istore/base/include "-DWEIR_KERNELS_SUM=\"$(kernels_sum)\"" \
            -c "$source" -o "${objects[-1]}" >>"$2/ptxas.log" 2>&1 || {
            cat "$2/ptxas.log"
            return 1
        }
    done
    "$1/bin/nvcc" -shared -L"$1/lib" "${kernels_for[@]}" "${objects[@]}" -o "$2/libweir_cuda.so"
}

# A line each: what it is compiled for, registers of a thread, bytes that are spilled, bytes that a block shares, name.
kernels_table() { # FOLDER
    awk '/Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2]; device = quoted[4]; spilled = 0 }
        /bytes spill stores/ && name { spilled += $5 + $9 }
        /: Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
            shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
            printf "%s %4d %4d %6d %s\n", device, registers, spilled, shared, name; name = ""
        }' "$1/ptxas.log" | c++filt | sed 's/(.*//' | sort -k1,1 -k5,5
}

# In a line: how many, and for what.
kernels_count() { # FOLDER
    kernels_table "$1" | cut -d ' ' -f 1 | sort | uniq -c | awk '{ printf "%s%d for %s", sep, $1, $2; sep = ", " }'
}

# Fails where one takes too much, or the assembler has not told of all of them for each device.
kernels_are_held() { # FOLDER
    local written
    written=$(cat inference/kernel/cuda/*.cu | grep -c '__global__')
    kernels_table "$1" | awk -v registers=$kernels_registers_max -v shared=$kernels_shared_max -v written="$written" '
        { found[$1]++ }
        $2 > registers || $3 > 0 || $4 > shared { print "takes too much: " $0; bad = 1 }
        END {
            if (found["sm_80"] < written || found["sm_80"] != found["sm_90"]) {
                printf "%d kernels are written, %d and %d were compiled\n", written, found["sm_80"], found["sm_90"]
                bad = 1
            }
            exit bad
        }'
}
