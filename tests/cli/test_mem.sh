#!/bin/sh
# /mem and /plan in plain text and in tmux: what a budget brings is said, then it stands; the answer is the same.
set -e
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
command -v tmux >/dev/null && . tests/support/tmux.sh || { dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT; }
export LC_ALL=C.UTF-8 XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir"
unset EBB_MODELS
chat="$EBB chat -m models/guide.gguf --ctx 512 -n 12 --greedy --no-kv-cache --trace $dir/trace"
has() { grep -qE -- "$2" "$dir/$1" || { echo "$1 lacks: $2"; cat "$dir/$1"; exit 1; }; }

$chat --plain >"$dir/wide" <<'END'
How do I leave?
END
total=$($EBB plan -m models/guide.gguf --ctx 512 --json | sed -n 's/.*"total_bytes": *\([0-9]*\).*/\1/p')
less=$(($total + 1024 * 1024))                   # so little that the weights are copied, not mapped
$chat --plain >"$dir/narrow" <<END
/mem
/mem 1M
/mem $less
/mem
/plan
How do I leave?
/mem auto
/mem nonsense
END
has narrow '^budget  *[0-9.]+ [MG]iB$'
has narrow '^tier full, [0-9]+ of [0-9]+ layers in memory; predicted '
has narrow '^Note: the budget stays as it is: a context of 512 needs at least '
has narrow '^Note: budget [0-9.]+ MiB: tier (full|tight), [0-9]+ of [0-9]+ layers in memory, about [0-9.]+ tok/s$'
has narrow '^Note: the new budget is in force after '
has narrow '^weights, pinned  *[0-9.]+ MiB'
has narrow '^tier full: everything fits'
has narrow '^  weights, resident  *[0-9.]+ MiB'
has narrow '^Note: budget .*: tier full, '
has narrow '^Error: /mem nonsense: give a size'
has trace 'budget: budget [0-9.]+ MiB: '
[ "$(grep '^Model: ' "$dir/wide")" = "$(grep '^Model: ' "$dir/narrow")" ] || { echo "another answer"; cat "$dir/wide" "$dir/narrow"; exit 1; }

# A budget that context and type of K and V as they are do not fit: what a new plan would bring is said, and can be had.
small=$($EBB plan -m models/guide.gguf --ram 35M --json | sed -n 's/.*"kv_type": *"\([^"]*\)".*/\1/p')
$EBB chat -m models/guide.gguf -n 12 --greedy --no-kv-cache --plain >"$dir/anew" <<'END'
How do I leave?
/mem 35M
/mem 35M anew
How do I leave?
/mem
/mem 1M anew
END
has anew '^Note: the budget stays as it is: a context of '
has anew "^Note: A new plan would have [0-9]+ of [0-9]+ layers in memory, .* with K and V in $small and a context of [0-9]+ tokens \\(now f16 and [0-9]+\\); the [0-9]+ tokens of the conversation are read again.* /mem 35M anew reopens the model so\\."
has anew "^Note: the model is reopened with K and V in $small and a context of [0-9]+ tokens: budget 35.0 MiB: tier "
has anew '^budget  *35.0 MiB'
has anew '^Error: no plan fits that budget '
[ "$(grep -c '^Model: ' "$dir/anew")" = 2 ] || { echo "an answer is missing"; cat "$dir/anew"; exit 1; }

command -v tmux >/dev/null || { echo "tmux is not there: the full screen was not tried"; exit 0; }
tm new-session -d -x 140 -y 40 "$chat" || { echo "tmux does not start"; exit 0; }
wait_for 'memory (RSS)'
tm send-keys "/mem $less" Enter
wait_for_re '\* budget .* tier (full|tight), '
wait_for_re '\* the new budget is in force after '
wait_for_re 'budget [0-9.]+ MiB: everything fits'    # the panel's last decision
tm send-keys '/plan' Enter
wait_for_re '  total  *[0-9.]+ MiB'
