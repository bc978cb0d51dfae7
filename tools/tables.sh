#!/bin/sh
# tables.sh SHAPES [DIR] - the tables of the layer-streaming paper (2, 3, 4, 7, 8, 9) for docs/PERFORMANCE.md, as Markdown.
# SHAPES is make-model.py, which writes a file of a network's shape without weights (--hollow): enough for a plan.
# Speeds are predicted for a machine of the table of `ebb plan --like` (LIKE=cloud); where DIR holds SHAPE-TYPE.gguf with
# weights, they are measured on this machine, too, and predicted for it in brackets (column "measured here"; - where nobody
# has): the median of RUNS (1) over TOKENS (16) tokens each. ONLY=2,7: these tables.
set -eu
EBB=${EBB:-build/release/ebb} LIKE=${LIKE:-cloud} PYTHON=${PYTHON:-python3} TOKENS=${TOKENS:-16} RUNS=${RUNS:-1} ONLY=${ONLY:-}
[ $# -ge 1 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
shapes=$1 real=${2:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

hollow() { [ -e "$tmp/$1-$2.gguf" ] || "$PYTHON" "$shapes" "$1" "$2" "$tmp/$1-$2.gguf" --hollow >/dev/null; file=$1-$2; }

planned() { "$EBB" plan -m "$tmp/$file.gguf" --like "$LIKE" --json "$@"; }

field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1; }

gb() { awk '{ printf "%.2f", $1 / 1e9 }'; }

two() { awk '{ printf "%.2f", $1 }'; }

measured() {                                     # OPTIONS...: tok/s (predicted), or -
    [ -n "$real" ] && [ -e "$real/$file.gguf" ] || { echo -; return; }
    "$EBB" bench -m "$real/$file.gguf" -p 16 -n "$TOKENS" -r "$RUNS" --json -q "$@" >"$tmp/bench" || { echo -; return; }
    printf '%s (%s)\n' "$(field decode_tok_s <"$tmp/bench" | two)" "$(field predicted_decode_tok_s <"$tmp/bench" | two)"
}

is_wanted() { case ",${ONLY:-$1}," in *,"$1",*) return 0 ;; esac; return 1; }

row() {                                          # FIRST-COLUMNS OPTIONS...
    first=$1; shift
    planned "$@" >"$tmp/plan"
    printf '| %s | %s/%s | %s | %s | %s |\n' "$first" "$(field resident_layers <"$tmp/plan")" "$(field layers <"$tmp/plan")" \
        "$(field total_bytes <"$tmp/plan" | gb)" "$(field predicted_decode_tok_s <"$tmp/plan" | two)" \
        "$(measured "$@")"
}

head_of() { printf '\n%s\n\n| %s | resident here | GB here | tok/s predicted | measured here |\n|%s---|---|---|---|\n' "$1" "$2" "$3"; }

if is_wanted 2; then
    head_of "Table 2, all in memory." "model | tok/s there (M2 Ultra) | GB there" "---|---|---|"
    while read -r name type speed there; do
        hollow "$name" "$type"
        row "$name $type | $speed | $there" --resident 100% --ctx 2048 --ram 24G
    done <<'ROWS'
qwen3.5-0.8b Q8_0 302.7 0.80
qwen3.5-0.8b BF16 219.2 1.47
qwen3.5-4b Q4_K_M 148.1 2.34
qwen3.5-4b Q6_K 117.1 3.32
qwen3.5-4b BF16 66.2 7.94
qwen3.5-9b Q6_K 77.9 6.90
qwen3.5-9b Q8_0 67.3 8.97
qwen3.5-27b Q4_K_M 35.0 14.34
ROWS
fi

if is_wanted 3; then
    head_of "Table 3, nothing resident: memory." "model | GB there" "---|---|"
    while read -r name type there; do hollow "$name" "$type"; row "$name $type | $there" --resident 0 --ctx 2048; done <<'ROWS'
qwen3.5-0.8b Q8_0 0.29
qwen3.5-4b Q4_K_M 0.47
qwen3.5-9b Q8_0 2.29
qwen3.5-27b Q4_K_M 1.70
ROWS
fi

if is_wanted 4; then
    hollow qwen3.5-9b Q8_0
    head_of "Table 4, Qwen3.5-9B in 8 bits by resident layers." "resident there | tok/s there (M2 Ultra)" "---|---|"
    while read -r n there; do row "$n/32 | $there" --resident "$n" --ctx 2048 --ram 24G; done <<'ROWS'
32 68.3
24 5.9
16 3.2
8 2.2
0 1.7
ROWS
fi

if is_wanted 7; then
    hollow qwen3.5-9b Q6_K
    head_of "Table 7, Qwen3.5-9B in 6 bits by budget." "budget | resident there | tok/s there (iPad M3)" "---|---|---|"
    while read -r ram n there; do row "$ram | $n/32 | $there" --ram "$ram" --ctx 2048; done <<'ROWS'
2.0G 2 0.30
3.0G 8 0.37
3.5G 11 0.39
4.0G 14 0.45
5.0G 20 0.57
ROWS
fi

if is_wanted 8; then
    hollow qwen3.5-9b Q6_K
    head_of "Table 8, the same by mode, with 6.5 GB." "mode | resident there | tok/s there (iPad M3)" "---|---|---|"
    while read -r mode n there; do row "$mode | $n/32 | $there" --ram 6500M --mode "$mode"; done <<'ROWS'
balanced 2 0.26
max-context 22 0.39
max-tps 24 0.03
ROWS
fi

if is_wanted 9; then
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
fi

# The networks that the other document names, in the same tables.
others='gemma-2-9b Q4_K_M
llama-3.1-8b Q4_K_M
qwen2.5-7b Q4_K_M
phi-3.5-mini Q4_K_M
qwen3.5-27b Q4_K_M'

if is_wanted 4; then
    head_of "Tables 2, 3, 4 and 9 for other networks: by the share that is resident." "model | resident" "---|---|"
    echo "$others" | while read -r name type; do
        hollow "$name" "$type"
        for share in 100 75 50 25 0; do row "$name $type | $share %" --resident "$share%" --ctx 2048 --ram 24G; done
    done
fi

if is_wanted 7; then
    head_of "Table 7 for other networks: by budget." "model | budget" "---|---|"
    echo "$others" | while read -r name type; do
        hollow "$name" "$type"
        for ram in 2G 3G 4G 5G 6G; do row "$name $type | $ram" --ram "$ram" --ctx 2048; done
    done
fi

if is_wanted 8; then
    head_of "Table 8 for other networks: by mode, with 6.5 GB (max-context with nothing said yet)." "model | mode" "---|---|"
    echo "$others" | while read -r name type; do
        hollow "$name" "$type"
        for mode in balanced max-context max-tps; do row "$name $type | $mode" --ram 6500M --mode "$mode"; done
    done
fi
