# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# builds.sh - the builds by name; each is a folder below build/.

build_names='release asan tsan clang coverage'

build_options() { # NAME: sets options
    local gcc=(-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++)
    case $1 in
        release) options=("${gcc[@]}") ;;
        asan) options=("${gcc[@]}" -DWEIR_SANITIZE=address) ;;
        tsan) options=("${gcc[@]}" -DWEIR_SANITIZE=thread) ;;
        clang) options=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DWEIR_FUZZ=ON) ;;
        coverage) options=("${gcc[@]}" -DWEIR_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug) ;;
        *)
            echo "there is no build named $1; there are: $build_names" >&2
            return 64
            ;;
    esac
}

# Begins anew where the options are new or the tree has moved. Otherwise it configures again all the same: a library may
# have been installed since, and ninja would not look.
build_configure() { # NAME
    local folder=build/$1 options=()
    build_options "$1"
    if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt" ||
        ! grep -qsxF -- "${options[*]}" "$folder/options" || [ ! -f "$folder/build.ninja" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cmake -S . -B "$folder" -G Ninja "${options[@]}"
        printf '%s\n' "${options[*]}" >"$folder/options"
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
