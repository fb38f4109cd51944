# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# steps.sh - runs a step with its output in a log, and prints one line of it: mark, name, time, note.
#
# A step is a function step_NAME. It may say what it has found by `note`; what it prints is in $logs/NAME.log.

logs=build/check
step=''
steps_failed=()

# Seconds between two values of EPOCHREALTIME, in tenths: "12.3 s", "2:05 min".
elapsed() { # START
    local now=$EPOCHREALTIME tenths
    tenths=$(((${now/[.,]/} - ${1/[.,]/}) / 100000))
    if [ $tenths -lt 1000 ]; then
        printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
    else
        printf '%d:%02d min' $((tenths / 600)) $((tenths / 10 % 60))
    fi
}

note() { printf '%s\n' "$*" >"$logs/$step.note"; }

print_step() { # MARK NAME TIME NOTE
    printf '%s %-10s %10s  %s\n' "$1" "$2" "$3" "$4"
}

step_failed() { # NAME
    [[ " ${steps_failed[*]} " == *" $1 "* ]]
}

# What of a log says why: the first errors, which a compiler's end is far from, and the end.
failure() { # LOG
    if [ "$(wc -l <"$1")" -gt 40 ]; then
        grep -m 15 -E '(^|[: ])(fatal )?error[: ]|FAILED|\*\*\*Failed|\[  FAILED  \]' "$1" || true
        echo '…'
    fi
    # Tests that passed say nothing about the one that did not.
    { grep -v -E '^ *Start +[0-9]+: |Test +#[0-9]+: .* Passed ' "$1" || true; } | tail -n 30
}

# Runs step_NAME unless a step that it needs has failed. The subshell stands alone, not in a condition, so that errexit
# ends a step at its first failing command.
run_step() { # NAME [NEEDED…]
    local needed started=$EPOCHREALTIME status
    step=$1
    shift
    for needed in "$@"; do
        if step_failed "$needed"; then
            print_step - "$step" '' "not run, because $needed failed"
            steps_failed+=("$step")
            return 0
        fi
    done
    rm -f "$logs/$step.note"
    set +e
    (
        set -e
        "step_$step"
    ) >"$logs/$step.log" 2>&1 </dev/null
    status=$?
    set -e
    if [ $status = 0 ]; then
        print_step ✓ "$step" "$(elapsed "$started")" "$(cat "$logs/$step.note" 2>/dev/null || true)"
    else
        print_step ✗ "$step" "$(elapsed "$started")" "exit status $status; all of it in $logs/$step.log"
        failure "$logs/$step.log" | sed 's/^/    /'
        steps_failed+=("$step")
    fi
}
