#!/bin/sh
# Files that need each other to link, by their symbols: sets in which each calls each, directly or through others.
# None has more than 3 files.  EBB_CYCLES=-v lists the sets of all roots, of 2 files on.
set -u
held='engine/|core/|chat/|tui/|cli/'  # roots in which a set has 3 files at most, but for ...
free='chat/template/'         # ... an expression, which contains calls, which contain expressions
objects=$(dirname "$EBB")
[ -d "$objects/engine" ] || { echo "$EBB was not built here"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

find src -name '*.c' | sed "s|^src/|$objects/|; s|c\$|o|" | while read -r o; do [ ! -f "$o" ] || echo "$o"; done | sort |
    xargs nm -A -g | awk -v base="$objects/" -v most=3 -v held=" ($held)" -v free=" $free" -v show="${EBB_CYCLES:-}" '
    # FILE:[address] KIND symbol
    {
        file = $1; sub(/:.*/, "", file); sub(base, "", file); sub(/\.o$/, "", file)
        kind = $(NF - 1); symbol = $NF
        if (!(file in number)) { number[file] = n_files; name[n_files++] = file }
        if (kind == "U") { user[n_uses] = number[file]; used[n_uses++] = symbol }
        else if (kind ~ /^[TDBRVWC]$/) owner[symbol] = number[file]
    }
    END {
        for (i = 0; i < n_uses; i++)
            if ((used[i] in owner) && owner[used[i]] != user[i] && !seen[user[i], owner[used[i]]]++)
                callee[user[i], n_callees[user[i]]++] = owner[used[i]]
        for (from = 0; from < n_files; from++) {         # all that is reached from a file
            top = 0; stack[top++] = from
            while (top > 0) {
                at = stack[--top]
                for (i = 0; i < n_callees[at]; i++)
                    if (!reached[from, callee[at, i]]++) stack[top++] = callee[at, i]
            }
        }
        for (a = 0; a < n_files; a++) {
            if (done[a] || !reached[a, a]) continue
            size = 0; set = ""
            for (b = 0; b < n_files; b++)
                if (reached[a, b] && reached[b, a]) { done[b] = 1; size++; set = set " " name[b] }
            if (size < 2) continue
            if (show != "" || (size > most && set ~ held && set !~ free)) printf "%d:%s\n", size, set
            if (size > most && set ~ held && set !~ free) bad = 1
        }
        if (n_files < 100) { print "only " n_files " objects"; bad = 1 }
        exit bad
    }' >"$out"
status=$?
[ $status -eq 0 ] || echo "files that cannot be taken apart:"
sort -rn "$out"
exit $status
