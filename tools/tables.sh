#!/bin/sh
# tables.sh SHAPES [DIR] - the tables of the layer-streaming paper (3, 4, 7, 8, 9) for docs/PERFORMANCE.md, as Markdown.
# SHAPES is make-model.py, which writes a file of a network's shape without weights (--hollow): enough for a plan.
# Speeds are predicted for a machine of the table of `ebb plan --like` (LIKE=cloud); where DIR holds NAME.gguf with
# weights, they are measured on this machine, too (column "measured"; - where nobody has).
set -eu
EBB=${EBB:-build/release/ebb} LIKE=${LIKE:-cloud} PYTHON=${PYTHON:-python3}
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
shapes=$1 real=${2:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

hollow() { [ -e "$tmp/$1-$2.gguf" ] || "$PYTHON" "$shapes" "$1" "$2" "$tmp/$1-$2.gguf" --hollow >/dev/null; file=$1-$2; }

planned() { "$EBB" plan -m "$tmp/$file.gguf" --like "$LIKE" --json "$@"; }

field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1; }

gb() { awk '{ printf "%.2f", $1 / 1e9 }'; }

measured() {                                     # OPTIONS...: tok/s, or -
    [ -n "$real" ] && [ -e "$real/$file.gguf" ] || { echo -; return; }
    "$EBB" bench -m "$real/$file.gguf" -p 16 -n 16 -r 1 --json -q "$@" | field decode_tok_s | awk '{ printf "%.2f", $1 }'
}

row() {                                          # FIRST-COLUMNS OPTIONS...
    first=$1; shift
    planned "$@" >"$tmp/plan"
    printf '| %s | %s/%s | %s | %s | %s |\n' "$first" "$(field resident_layers <"$tmp/plan")" "$(field layers <"$tmp/plan")" \
        "$(field total_bytes <"$tmp/plan" | gb)" "$(field predicted_decode_tok_s <"$tmp/plan" | awk '{ printf "%.2f", $1 }')" \
        "$(measured "$@")"
}

head_of() { printf '\n%s\n\n| %s | resident here | GB here | tok/s predicted | measured |\n|%s---|---|---|---|\n' "$1" "$2" "$3"; }

head_of "Table 3, nothing resident: memory." "model | GB there" "---|---|"
while read -r name type there; do hollow "$name" "$type"; row "$name $type | $there" --resident 0 --ctx 2048; done <<'ROWS'
qwen3.5-0.8b Q8_0 0.29
qwen3.5-4b Q4_K_M 0.47
qwen3.5-9b Q8_0 2.29
ROWS

hollow qwen3.5-9b Q8_0
head_of "Table 4, Qwen3.5-9B in 8 bits by resident layers." "resident there | tok/s there (M2 Ultra)" "---|---|"
while read -r n there; do row "$n/32 | $there" --resident "$n" --ctx 2048 --ram 24G; done <<'ROWS'
32 68.3
24 5.9
16 3.2
8 2.2
0 1.7
ROWS

hollow qwen3.5-9b Q6_K
head_of "Table 7, Qwen3.5-9B in 6 bits by budget." "budget | resident there | tok/s there (iPad M3)" "---|---|---|"
while read -r ram n there; do row "$ram | $n/32 | $there" --ram "$ram" --ctx 2048; done <<'ROWS'
2.0G 2 0.30
3.0G 8 0.37
3.5G 11 0.39
4.0G 14 0.45
5.0G 20 0.57
ROWS

head_of "Table 8, the same by mode, with 6.5 GB." "mode | resident there | tok/s there (iPad M3)" "---|---|---|"
while read -r mode n there; do row "$mode | $n/32 | $there" --ram 6500M --mode "$mode"; done <<'ROWS'
balanced 2 0.26
max-context 22 0.39
max-tps 24 0.03
ROWS

hollow qwen3.5-4b Q4_K_M
head_of "Table 9, Qwen3.5-4B in 4 bits by resident layers, where all fits." "resident there | tok/s there (iPad M3)" "---|---|"
while read -r n there; do row "$n/32 | $there" --resident "$n" --ctx 2048 --ram 6500M; done <<'ROWS'
0 2.3
8 3.9
16 5.2
24 6.5
28 10.3
32 35.5
ROWS
