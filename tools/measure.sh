#!/bin/sh
# measure.sh MODEL [prompt|depth|threads|resident|memory ...] - write docs/data/*.tsv, then the plots.
# Everything by default.  One model, `ebb bench` over a list of values, one run each (RUNS=3 for medians).
# With LLAMA_BENCH="llama-bench -m FILE" the peer is measured in turn; without it its old figures stay.
# "memory" wants root and a memory cgroup (v1 or v2): the page cache counts, as on a small machine.
#   PROMPTS DEPTHS THREADS RESIDENT LIMITS - other lists than those below     TOKENS - length of an answer
# "resident" and "memory" also put their rows into docs/PERFORMANCE.md.  TABLE=f16 LIMITS="6G 4G" measure.sh F16.gguf memory
# is the table of another file.
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
bench() {                                        # SIZE OPTIONS...: all figures of a run, in $json
    size=$1; shift
    json=$(under "$size" "$EBB" bench -m "$model" -r "${RUNS:-1}" --json -p 1 -n "${TOKENS:-6}" --ctx 2048 "$@")
}
get() { printf '%s\n' "$json" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
scaled() { get "$1" | awk -v by="$2" -v format="$3" '$1 > 0 { printf format, $1 / by }'; }

drop_in() {                                      # NAME: its rows take the place of the old ones in the page
    [ "$data" = docs/data ] || { cat "$data/$1.rows"; return; }
    awk -v name="<!-- table $1 -->" -v rows="$data/$1.rows" '
        $0 == name { print; while ((getline line <rows) > 0) print line; inside = 1 }
        $0 == "<!-- end -->" { inside = 0 }
        !inside' docs/PERFORMANCE.md >"$data/page" && cat "$data/page" >docs/PERFORMANCE.md
    rm -f "$data/page" "$data/$1.rows"
}

resident() {                                     # the peer has no such choice
    file_bytes=$(stat -L -c %s "$model")
    { echo '| `--resident` | peak memory | of the file | read per token | tok/s | predicted | of the bound |'
      echo '|---|---|---|---|---|---|---|'; } >"$data/resident.rows"
    : >"$data/peak.new"
    for r in ${RESIDENT:-0 25 50 75 100}; do
        bench warm --resident "$r%"
        row "$r" "$(scaled decode_tok_s 1 %.2f)"
        printf '%s\t%s\n' "$r" "$(scaled peak_rss_bytes 1073741824 %.2f)" >>"$data/peak.new"
        echo "| $r% | $(scaled peak_rss_bytes 1073741824 %.2f) GiB | $(scaled peak_rss_bytes "$file_bytes" %.3f | awk '{ printf "%.0f", 100 * $1 }') % |" \
            "$(scaled read_bytes_per_token 1e9 '%.2f GB') | $(scaled decode_tok_s 1 %.2f) | $(scaled predicted_decode_tok_s 1 %.2f) |" \
            "$(scaled bound_share 0.01 '%.0f %%') |" >>"$data/resident.rows"
    done | cut -f 1,2 | table resident "Answer, by the share of the weights that stays in memory" \
        "percent of the weights; the others are read for every token" lines percent
    sed -i 's/\tllama.cpp$//' "$data/resident.tsv"
    { printf '# title: Memory, by the share of the weights that stays in it\n# x: percent of the weights\n# y: peak of the process, GiB\n'
      printf '# lines\n# note: %s\npercent\tebb\n' "$note"; cat "$data/peak.new"; } >"$data/peak.tsv"
    rm "$data/peak.new"
    drop_in resident
}
memory() {
    name=${TABLE:-memory}
    { echo '| limit | resident | read per token | reader | ebb | llama.cpp | ebb predicted | reader alone | of the bound |'
      echo '|---|---|---|---|---|---|---|---|---|'; } >"$data/$name.rows"
    for l in ${LIMITS:-1536M 2G 3G 4G 5G 6G none}; do
        x=$(echo "$l" | sed 's/^1536M$/1.5 GiB/; s/G$/ GiB/')
        bench "$l"
        peer=$(peer_figure "$l" "$data/$name.tsv" "$x" -p 0 -n "${TOKENS:-6}")
        row "$x" "$(scaled decode_tok_s 1 %.2f)" "$peer"
        echo "| $x | $(get resident_layers) of $(get layers) | $(scaled read_bytes_per_token 1e9 '%.2f GB') | $(get io) | $(scaled decode_tok_s 1 %.2f) |" \
            "$(echo "$peer" | sed 's/^-$//') | $(scaled predicted_decode_tok_s 1 %.2f) | $(scaled bare_disk_bytes_s 1e9 '%.2f GB/s') |" \
            "$(scaled bound_share 0.01 '%.0f %%') |" >>"$data/$name.rows"
    done | table "$name" "Answer, in less memory than the model has" "limit of the cgroup, page cache included" bars limit
    drop_in "$name"
}

n=${TOKENS:-24}
for part in ${*:-prompt depth threads resident memory}; do
    case $part in
    prompt | depth | threads | resident | memory) echo "== $part" >&2; "$part" ;;
    *) echo "measure.sh: what is '$part'?" >&2; exit 2 ;;
    esac
done
[ "$data" != docs/data ] || python3 tools/plot.py
