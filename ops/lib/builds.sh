# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# builds.sh - the builds by name, each a folder below build/; ops/cmake/presets.json says what each is.

build_names() { sed -nE 's/.*\{"name": "([a-z]+)", "inherits".*/\1/p' ops/cmake/presets.json; }

# Begins anew where the presets are new or the tree has moved. Otherwise it configures again all the same: a library may
# have been installed since, and ninja would not look.
build_configure() { # NAME
    local folder=build/$1
    if ! build_names | grep -qxF -- "$1"; then
        echo "there is no build named $1; there are: $(build_names | paste -sd ' ')" >&2
        return 64
    fi
    # Where CMake and editors look for presets; git ignores the file, which may be the user's own.
    if [ ! -f CMakeUserPresets.json ]; then
        printf '{"version": 6, "include": ["ops/cmake/presets.json"]}\n' >CMakeUserPresets.json
    fi
    if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt" ||
        ! cmp -s ops/cmake/presets.json "$folder/presets.json" || [ ! -f "$folder/build.ninja" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cmake --preset "$1"
        cp ops/cmake/presets.json "$folder/presets.json"
    else
        cmake -S . -B "$folder" >"$folder/configure.log"
    fi
}

build() { # NAME [TARGET…]
    local name=$1
    shift
    build_configure "$name"
    ninja -C "build/$name" -j "${jobs:-$(nproc)}" -k 20 "$@"
}
