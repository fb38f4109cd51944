# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh - installs the Debian packages of ops/packages/LIST.txt, and touches nothing when all are there.

packages_of() { # LIST…
    local list
    for list in "$@"; do sed -E 's/#.*//; /^ *$/d' "ops/packages/$list.txt"; done | sort -u
}

packages_missing() { # LIST…
    local package
    packages_of "$@" | while IFS= read -r package; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
    done
}

packages_install() { # LIST…
    local missing sudo=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "This is not Debian: install what ops/packages/{$(IFS=,; echo "$*")}.txt name, then say --no-install." >&2
        return 69
    fi
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "Packages are missing: ${missing[*]}. Run this as root, or install sudo, or install them yourself." >&2
            return 69
        fi
        sudo=(sudo)
    fi
    echo "installing ${missing[*]}"
    "${sudo[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install --no-install-recommends "${missing[@]}"
}
