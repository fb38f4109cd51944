# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# lib.sh - what every rule shares.
#
# A rule is a script that runs in the root of a tree, on the files given or on all of them, prints one line a finding,
# `file:line: rule: what to do`, and exits 1 when there was one. It never changes a file.
set -euo pipefail
export LC_ALL=C

rule=${0##*/}
lint=$(cd "${0%/*}" && pwd)
export lint
# What holds data, not text of ours.
data='^tests/(fuzz/corpus|golden)/'

# The files given, or all that belong to the tree: tracked and new ones in a git checkout, everything in an export.
files() {
    if [ $# -gt 0 ]; then
        printf '%s\n' "$@"
    elif git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard | sort -u | while IFS= read -r file; do
            if [ -f "$file" ]; then printf '%s\n' "$file"; fi
        done
    else
        find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sed 's|^\./||' | sort
    fi
}

# Of the names on standard input, those that match; none is no failure.
matching() { grep -E "$1" || true; }
text_files() { files "$@" | { grep -Ev "$data" || true; }; }
c_files() { text_files "$@" | matching '\.(c|h|cu|cuh)$'; }
shell_files() {
    text_files "$@" | while IFS= read -r file; do
        case $file in
            *.sh) printf '%s\n' "$file" ;;
            *.*) ;;
            *) if head -n 1 "$file" | tr -d '\0' | grep -Eq '^#!.*[/ ](ba)?sh$'; then printf '%s\n' "$file"; fi ;;
        esac
    done
}

finding() { printf '%s: %s: %s\n' "$1" "$rule" "$2"; }

# Ends a pipeline of findings: prints each once, in order, and fails when there is one. A place may have several.
verdict() {
    local found
    found=$(sort -u | sort -s -t: -k1,1 -k2,2n)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
        return 1
    fi
}
