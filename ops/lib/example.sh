# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# example.sh - of the payments that nobody has stored yet, the planted fraud that the model is surest of.
#
# $dir/next.jsonl holds those payments, $dir/truth.jsonl which of all are fraud, $dir/shown those of earlier runs.

member() { # NAME: of each JSON line of standard input
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

score_body() { # PAYMENT [REASONS]
    printf '{"source":"payments","reasons":%d,"event":%s}' "${2:-0}" "$1"
}

# SCORE<tab>PAYMENT for each line of standard input. Nothing is stored by it.
scores() { # URL
    local payment score
    while IFS= read -r payment; do
        score=$(score_body "$payment" | curl -sf "$1/v1/score" -H 'Content-Type: application/json' -d @- |
            sed -n 's/.*"score":\([0-9.e-]*\).*/\1/p')
        printf '%s\t%s\n' "${score:?}" "$payment"
    done
}

median() { cut -f 1 | sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.3f", v[int((NR + 1) / 2)] }'; }

# Payments of the next day that are planted fraud of this kind, or (kind '') that are none.
next_of() { # KIND COUNT
    if [ -n "$1" ]; then
        grep -F "\"kind\":\"$1\"" "$dir/truth.jsonl" | member payment | next_with | not_shown
    else
        member payment <"$dir/truth.jsonl" | next_with -v
    fi | sed -n "1,$2p"
}

next_with() { grep "$@" -F -f <(sed 's/.*/"id":"&"/') "$dir/next.jsonl" || true; }
not_shown() { if [ -s "$dir/shown" ]; then grep -v -F -f "$dir/shown"; else cat; fi; }

# Leaves what it has scored in $dir/planted and $dir/honest, each by falling score; rings first, because they share
# devices and can be drawn. Fails when all were shown.
example_choose() { # URL
    local kind
    for kind in ring takeover stolen_card mule collusion; do
        next_of "$kind" 40 | scores "$1" | sort -t $'\t' -k 1,1gr >"$dir/planted"
        [ ! -s "$dir/planted" ] || break
    done
    next_of '' 40 | scores "$1" | sort -t $'\t' -k 1,1gr >"$dir/honest"
    [ -s "$dir/planted" ]
}
