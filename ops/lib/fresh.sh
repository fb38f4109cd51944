# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh - the README's two commands in a bare Debian 12, on a clone of what is committed.
#
# The folder takes over from this machine how packages are fetched (sources, proxy, own certificates) and nothing else.
# It runs in namespaces of its own, so its mounts and processes end with it.

# What an init system has mounted on any machine.
fresh_mounts='mount -t proc proc /proc && mkdir -p /dev/pts /dev/shm && mount -t tmpfs tmpfs /dev/shm &&
    mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && ln -sf pts/ptmx /dev/ptmx'
fresh_passed_on=(http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY MAVEN_OPTS)

fresh() {
    local mirror commands started=$EPOCHREALTIME environment=() name
    if [ "$(id -u)" != 0 ]; then
        echo 'ops/check --fresh makes a system in a folder and changes its root: run it as root.' >&2
        return 69
    fi
    packages_install fresh
    mapfile -t commands < <(fresh_commands)
    if [ ${#commands[@]} != 2 ]; then
        echo 'README.md has not two commands of ops/ below "## Two commands".' >&2
        return 1
    fi
    mirror=$(apt-get indextargets --format "\$(RELEASE) \$(SITE)" 'Created-By: Packages' |
        sed -n '/^bookworm /{s///p;q}')
    fresh_folder=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-fresh.XXXXXX")
    trap 'rm -rf --one-file-system "$fresh_folder" "$fresh_folder.log"' EXIT

    echo "a bare Debian 12 in $fresh_folder"
    debootstrap --variant=minbase bookworm "$fresh_folder" "$mirror" >"$fresh_folder.log" 2>&1 || {
        tail -n 20 "$fresh_folder.log"
        return 1
    }
    fresh_carry_over "$fresh_folder"
    git clone -q --no-local . "$fresh_folder/srv/weir"
    for name in "${fresh_passed_on[@]}"; do [ -z "${!name:-}" ] || environment+=("$name=${!name}"); done
    echo "made in $(elapsed "$started")"
    for name in "${commands[@]}"; do
        started=$EPOCHREALTIME
        echo "# $name"
        unshare --mount --pid --fork --kill-child chroot "$fresh_folder" \
            env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "${environment[@]}" \
            bash -c "$fresh_mounts && cd /srv/weir && exec $name" </dev/null
        echo "# $name: $(elapsed "$started")"
    done
}

# The two commands as the README has them, without the remarks behind them.
fresh_commands() {
    awk '/^## / { here = /^## Two commands/ } here && /^ops\/[a-z]+( *#.*)?$/ { print $1 }' README.md
}

fresh_carry_over() { # FOLDER
    local file
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
    rm -f "$1"/etc/apt/sources.list
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        if [ -f "$file" ]; then cp --parents "$file" "$1"; fi
    done
    # Settings that no package brought are this machine's own.
    for file in /etc/apt/apt.conf.d/*; do
        if [ -f "$file" ] && ! dpkg-query -S "$file" >/dev/null 2>&1; then cp --parents "$file" "$1"; fi
    done
    mkdir -p "$1/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/"
    if [ -f "$HOME/.m2/settings.xml" ]; then
        mkdir -p "$1/root/.m2"
        cp "$HOME/.m2/settings.xml" "$1/root/.m2/"
    fi
}
