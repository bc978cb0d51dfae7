#!/bin/sh
# neighbours.sh MODEL [RUNS [OPTIONS...]] - what a plan predicts before and after runs beside random neighbours.
#
#   tests/bench/neighbours.sh model.gguf                   # in memory, busy loops
#   DISK=1 tests/bench/neighbours.sh model.gguf 20 --ram 3G    # and others that read the disk
#
# The machine must be quiet but for what this begins. Speeds are learned in a cache folder of its own: first in quiet,
# then in RUNS (20) runs of a few tokens, each beside none to three busy loops that come and go. Afterwards the predicted speed
# should be within 15 % of what was predicted in quiet, and of what is measured in quiet.
set -eu
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
EBB=${EBB:-build/release/ebb} SEED=${SEED:-1}
model=$1 runs=${2:-20}
shift; [ $# -eq 0 ] || shift
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
begun=
stop() { for p in $begun; do kill -- "-$p" 2>/dev/null || :; done; begun=; }
trap 'stop; rm -rf "$XDG_CACHE_HOME"' EXIT

random() {                                       # N: 0 .. N - 1
    SEED=$(((SEED * 1103515245 + 12345) % 2147483648))
    drawn=$((SEED / 65536 % $1))
}

number() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1; }

predicted() { "$EBB" plan -m "$model" --json "$@" | number predicted_decode_tok_s; }

measured() { n=$1; shift; "$EBB" bench -m "$model" -p 16 -n "$n" -r 1 --json -q "$@" | number decode_tok_s; }

neighbour() { setsid sh -c "$1" & begun="$begun $!"; }   # a group of its own, which is ended with all it began

spin="timeout --foreground %s sh -c 'while :; do :; done'"
read_disk="while :; do dd if='$model' of=/dev/null bs=1M iflag=direct 2>/dev/null; done"

before=$(predicted "$@")
quiet_before=$(measured 12 "$@")
learned=$(predicted "$@")
i=0
while [ "$i" -lt "$runs" ]; do
    random 4; n=$drawn told="$drawn loops"
    while [ "$n" -gt 0 ]; do
        random 4; on=$((1 + drawn))
        random 3
        neighbour "while :; do sleep 0.$((1 + drawn * 4)); $(printf "$spin" "$on"); done"
        n=$((n - 1))
    done
    random 2
    [ -z "${DISK:-}" ] || [ "$drawn" -eq 0 ] || { neighbour "$read_disk"; told="$told, a reader"; }
    s=$(measured 4 "$@")
    stop
    i=$((i + 1))
    echo "run $i beside $told: $s tok/s; predicted $(predicted "$@")"
done
after=$(predicted "$@")
quiet_after=$(measured 12 "$@")
awk -v p="$before" -v l="$learned" -v a="$after" -v m="$quiet_before" -v n="$quiet_after" 'BEGIN {
    printf "predicted in quiet %.2f, behind a run in quiet %.2f, behind the neighbours %.2f (%.3f of it)\n", p, l, a, a / l
    printf "measured in quiet %.2f before, %.2f after; predicted afterwards / measured %.3f\n", m, n, a / n
}'
