# SPDX-License-Identifier: Apache-2.0
# functions.awk - from the output of strip.pl: FILE<tab>LINE<tab>NAME<tab>LINES of every function definition, counted
# from the first line of its declaration to its closing brace.
#
# A function is a statement at depth 0 that has parentheses, no '=' and then a brace. A brace of extern "C" opens
# nothing.
BEGIN { FS = "\t" }

function forget() { statement = ""; first = 0 }

function name_of(text) {
    gsub(/__attribute__ *\(\(.*\)\)/, "", text)
    sub(/ *\(.*/, "", text)
    sub(/.*[ *]/, "", text)
    return text
}

$1 != file { file = $1; depth = 0; directive = 0; function_name = ""; forget() }

{
    code = $3
    if (directive || code ~ /^[ ]*#/) {
        directive = code ~ /\\$/
        next
    }
    while (match(code, /[{};]/)) {
        mark = substr(code, RSTART, 1)
        before = substr(code, 1, RSTART - 1)
        code = substr(code, RSTART + 1)
        if (depth == 0) {
            if (!first && before ~ /[^ ]/) first = $2
            statement = statement " " before
        }
        if (mark == "{") {
            if (depth == 0 && statement ~ /^ *extern *" *" *$/) { forget(); continue }
            if (depth == 0 && statement ~ /\(/ && statement !~ /=/) {
                function_name = name_of(statement)
                start = first
            }
            depth++
        } else if (mark == "}") {
            if (depth > 0) depth--
            if (depth == 0) {
                if (function_name != "") print file "\t" start "\t" function_name "\t" ($2 - start + 1)
                function_name = ""
                forget()
            }
        } else if (depth == 0) {
            forget()
        }
    }
    if (depth == 0 && code ~ /[^ ]/) {
        if (!first) first = $2
        statement = statement " " code
    }
}
