# SPDX-License-Identifier: Apache-2.0
# tags.awk - tags in comments that are none of `roles`, which begins and ends with a blank.
FNR == 1 { inside = 0 }
{
    text = ""
    rest = $0
    while (rest != "") { # only what stands in comments
        if (inside) {
            end = index(rest, "*/")
            text = text (end ? substr(rest, 1, end - 1) : rest)
            rest = end ? substr(rest, end + 2) : ""
            if (end) inside = 0
        } else if (match(rest, /"([^"\\]|\\.)*"|\/\*|\/\//)) {
            found = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            if (found == "/*") inside = 1
            if (found == "//") { text = text " " rest; rest = "" }
        } else rest = ""
    }
    while (match(text, /(^|[ (*])\[[a-z]+\]($|[^[(])/)) {
        tag = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH - 1)
        if (!match(tag, /\[[a-z]+\]/)) continue
        tag = substr(tag, RSTART + 1, RLENGTH - 2)
        if (index(roles, " " tag " ") == 0)
            print FILENAME ":" FNR ": " rule ": [" tag "] is no role of WEIR_THREAD_ROLES, nor [any] or [owner]"
    }
}
