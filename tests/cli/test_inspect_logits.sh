#!/bin/sh
# ebb inspect logits: for the ids of a file, each of which is one of the vocabulary as it stands there.
set -u
model=models/guide.gguf
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; cat "$dir/err" 2>/dev/null; exit 1; }
logits() { "$EBB" inspect logits -m "$model" --tokens "$dir/ids" "$@" >"$dir/out" 2>"$dir/err"; }

printf '1, 2\n3 ,4\n' >"$dir/ids"
logits --out "$dir/four" --greedy 3 || fail "blanks and commas"
[ "$(wc -w <"$dir/out")" -eq 3 ] || fail "three steps: $(cat "$dir/out")"
printf '1 2 3' >"$dir/ids"
logits --out "$dir/three" || fail "no end of line"
[ $(($(wc -c <"$dir/four") * 3)) -eq $(($(wc -c <"$dir/three") * 4)) ] || fail "logits of each position"
cmp -n "$(wc -c <"$dir/three")" "$dir/three" "$dir/four" || fail "the same ids, other bits"

for id in 4294967297 99999999999999999999 -1 100000000 x; do
    echo "1 $id" >"$dir/ids"
    logits --greedy 2 && fail "$id is taken for a token: $(cat "$dir/out")"
    grep -q "ids: '$(echo "$id" | cut -c -20)' is no token id below [0-9]" "$dir/err" || fail "$id is not named"
done
printf '1\0 2' >"$dir/ids"
logits --greedy 2 && fail "ids behind a zero byte are passed over: $(cat "$dir/out")"
grep -q 'ids: a zero byte is among the ids' "$dir/err" || fail "a zero byte: $(cat "$dir/err")"
echo >"$dir/ids"
logits --greedy 2 && fail "no ids"
grep -q 'holds no token ids' "$dir/err" || fail "no ids"
exit 0
