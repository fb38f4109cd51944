# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# example.sh - of the payments that nobody has stored yet, the planted fraud that the model is surest of.
#
# $dir/next.jsonl holds those payments, $dir/truth.jsonl which of all are fraud, $dir/shown those of earlier runs.

: "${dir:?the folder of the data}"

member() { # NAME: of each JSON line of standard input
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

score_body() { # PAYMENT [REASONS]
    printf '{"source":"payments","reasons":%d,"event":%s}' "${2:-0}" "$1"
}

# One request a payment, as curl reads its command line from a file.
score_requests() { # URL PAYMENT…
    local url=$1 payment body begin=''
    shift
    for payment in "$@"; do
        body=$(score_body "$payment")
        printf '%surl = "%s/v1/score"\nheader = "Content-Type: application/json"\ndata = "%s"\nsilent\nfail\n' \
            "$begin" "$url" "${body//\"/\\\"}"
        begin=$'next\n'
    done
}

# SCORE<tab>PAYMENT for each line of standard input, the highest first. Nothing is stored by it.
scores() { # URL
    local payments
    mapfile -t payments
    paste <(score_requests "$1" "${payments[@]}" | curl -K - | sed -n 's/.*"score":\([0-9.e-]*\).*/\1/p') \
        <(printf '%s\n' "${payments[@]}") | sort -t $'\t' -k 1,1gr
}

above_half() { awk '$1 > 0.5 { n++ } END { print n + 0 " of " NR }'; }

# The payments of the next day that are planted fraud, or those that are none (-v).
next_payments() { # [-v]
    member payment <"$dir/truth.jsonl" | sed 's/.*/"id":"&"/' >"$dir/planted.ids"
    grep "$@" -F -f "$dir/planted.ids" "$dir/next.jsonl"
}

not_shown() { grep -v -F -f "$dir/shown"; }

accounts_on() { # URL DEVICE: how many
    { curl -sf "$1/v1/neighbors/device/$2?relation=seen_on&direction=in&limit=100" || true; } |
        { grep -o '"type":"account","key":"[^"]*"' || true; } | sort -u | wc -l
}

# The first of the ten with the highest scores whose device several accounts share, which is something to see; or else
# the first of all.
example_from_planted() { # URL
    local line device
    while IFS= read -r line; do
        device=$(member device <<<"$line")
        if [ -n "$device" ] && [ "$(accounts_on "$1" "$device")" -ge 3 ]; then
            printf '%s\n' "$line"
            return
        fi
    done < <(sed -n 1,10p "$dir/planted")
    sed -n 1p "$dir/planted"
}

# Leaves what it has scored in $dir/planted and $dir/honest, each by falling score, and its choice in $dir/example.
example_choose() { # URL
    touch "$dir/shown"
    if ! next_payments | not_shown >"$dir/candidates"; then
        : >"$dir/shown"
        next_payments >"$dir/candidates"
    fi
    scores "$1" <"$dir/candidates" >"$dir/planted"
    next_payments -v | sed -n 1,50p | scores "$1" >"$dir/honest"
    example_from_planted "$1" >"$dir/example"
}
