#!/bin/sh
# measure.sh MODEL [prompt|depth|threads|resident|memory ...] - write docs/data/*.tsv, then the plots.
# Everything by default.  One model, `ebb bench` over a list of values, one run each (RUNS=3 for medians).
# With LLAMA_BENCH="llama-bench -m FILE" the peer is measured in turn; without it its old figures stay.
# "memory" wants root and a memory cgroup (v1 or v2): the page cache counts, as on a small machine.
#   PROMPTS DEPTHS THREADS RESIDENT LIMITS - other lists than those below     TOKENS - length of an answer
set -eu
cd "$(dirname "$0")/.."
EBB=${EBB:-build/release/ebb}
[ $# -ge 1 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
model=$1; shift
data=${DATA:-docs/data}
mkdir -p "$data"
note="$(basename "$model"); $(nproc) CPUs: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1); $(date +%F), load $(cut -d" " -f1 /proc/loadavg)"

under() {                                        # SIZE COMMAND...: in a cgroup of that size, with a cold page cache
    size=$1; shift                               # none: no limit; warm: as things are
    [ "$size" != warm ] || { "$@"; return; }
    sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
    [ "$size" != none ] || { "$@"; return; }
    bytes=$(numfmt --from=iec "$size")
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        group=/sys/fs/cgroup/ebb-measure.$$; limit=memory.max
        echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
    else
        group=/sys/fs/cgroup/memory/ebb-measure.$$; limit=memory.limit_in_bytes
    fi
    mkdir "$group" && echo "$bytes" >"$group/$limit"
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@" || true
    rmdir "$group" || true
}

ebb_figure() {                                   # SIZE KEY OPTIONS...
    size=$1 key=$2; shift 2
    under "$size" "$EBB" bench -m "$model" -r "${RUNS:-1}" --json "$@" |
        sed -n "s/.*\"$key\":\([0-9.]*\).*/\1/p" | awk '{ printf "%.2f", $1 }'
}

peer_figure() {                                  # SIZE FILE X OPTIONS...: measured, or the one of before
    size=$1 file=$2 x=$3; shift 3
    if [ -n "${LLAMA_BENCH:-}" ]; then
        # shellcheck disable=SC2086
        under "$size" $LLAMA_BENCH -r "${RUNS:-1}" -o json "$@" 2>/dev/null | sed -n 's/.*"avg_ts": *\([0-9.]*\).*/\1/p' |
            tail -n 1 | awk '{ printf "%.2f", $1 }'
    elif [ -f "$file" ]; then
        awk -F'\t' -v x="$x" '$1 == x { print $3 }' "$file"
    fi
}

table() {                                        # NAME TITLE X-AXIS HOW COLUMN; rows come from standard input
    { printf '# title: %s\n# x: %s\n# y: tokens per second\n# %s\n# note: %s\n%s\tebb\tllama.cpp\n' \
        "$2" "$3" "$4" "$note" "$5"; cat; } >"$data/$1.new"
    mv "$data/$1.new" "$data/$1.tsv"
}

row() { printf '%s\t%s\t%s\n' "$1" "${2:--}" "${3:--}"; echo "$1: ebb ${2:--}, llama.cpp ${3:--}" >&2; }

prompt() {
    for p in ${PROMPTS:-16 64 256 512 1024 2048}; do
        row "$p" "$(ebb_figure warm prefill_tok_s -p "$p" -n 1)" "$(peer_figure warm "$data/prompt.tsv" "$p" -p "$p" -n 0)"
    done | table prompt "Prompt" "tokens of the prompt" log tokens
}
depth() {
    for d in ${DEPTHS:-0 512 1024 2048 4096}; do
        row "$d" "$(ebb_figure warm decode_tok_s -p 1 -d "$d" -n "$n")" "$(peer_figure warm "$data/depth.tsv" "$d" -p 0 -d "$d" -n "$n")"
    done | table depth "Answer, by what stands before it" "tokens in the context" lines tokens
}
threads() {
    for t in ${THREADS:-$(seq "$(nproc)")}; do
        row "$t" "$(ebb_figure warm decode_tok_s -p 1 -n "$n" -t "$t")" "$(peer_figure warm "$data/threads.tsv" "$t" -p 0 -n "$n" -t "$t")"
    done | table threads "Answer, by threads" threads bars threads
}
resident() {                                     # the peer has no such choice
    for r in ${RESIDENT:-0 8 16 24 32}; do
        row "$r" "$(ebb_figure warm decode_tok_s -p 1 -n "${TOKENS:-6}" --ctx 2048 --resident "$r")"
    done | table resident "Answer, by the layers that stay in memory" "resident layers; the others are read for every token" lines layers
}
memory() {
    for l in ${LIMITS:-2G 3G 4G 5G 6G none}; do
        x=$(echo "$l" | sed 's/G$/ GiB/')
        row "$x" "$(ebb_figure "$l" decode_tok_s -p 1 -n "${TOKENS:-8}" --ctx 2048)" \
            "$(peer_figure "$l" "$data/memory.tsv" "$x" -p 0 -n "${TOKENS:-8}")"
    done | table memory "Answer, in less memory than the model has" "limit of the cgroup, page cache included" bars limit
}

n=${TOKENS:-24}
for part in ${*:-prompt depth threads resident memory}; do
    case $part in
    prompt | depth | threads | resident | memory) echo "== $part" >&2; "$part" ;;
    *) echo "measure.sh: what is '$part'?" >&2; exit 2 ;;
    esac
done
[ "$data" != docs/data ] || python3 tools/plot.py
