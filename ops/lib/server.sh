# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# server.sh - one `weir serve` in the background for the data in $dir, found again by later runs.
#
# Who uses it sets weir (the program) and dir (the folder).

: "${weir:?the program}" "${dir:?the folder of the data}"

# The process that an earlier run has started for this folder, if it is still that one.
server_pid() {
    local pid
    pid=$(cat "$dir/serve.pid" 2>/dev/null) || return 1
    tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF " serve --schema payments --data $dir " || return 1
    echo "$pid"
}

server_url() { sed -n 's/^\(http[^ ]*\) .*/\1/p' "$dir/serve.out" 2>/dev/null; }

server_start() { # OPTION…
    : >"$dir/serve.out"
    setsid "$weir" serve --schema payments --data "$dir" --listen 127.0.0.1:0 "$@" \
        >"$dir/serve.out" 2>"$dir/serve.log" 3>&- 9>&- &
    echo $! >"$dir/serve.pid"
}

# Records of all topics that the graph has.
server_applied() {
    curl -sf "$(server_url)/readyz" | grep -o '"applied":\[[0-9,]*' | tr -c '0-9\n' ' ' |
        awk '{ for (i = 1; i <= NF; i++) n += $i } END { print n + 0 }'
}

# A server says that it is ready when it has read what it knows of, and a broker tells by and by how much there is.
server_wait() { # RECORDS
    local until=$((SECONDS + 120))
    until [ "$(server_applied)" -ge "$1" ]; do
        if ! server_pid >/dev/null || [ "$SECONDS" -ge "$until" ]; then
            echo "the server does not get ready; its log, $dir/serve.log, ends so:"
            tail -n 3 "$dir/serve.log"
            return 1
        fi
        sleep 0.1
    done
}

server_stop() {
    local pid
    if pid=$(server_pid); then
        kill -TERM "$pid"
        while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
        echo "stopped the server, process $pid"
    fi
    rm -f "$dir/serve.pid"
}
