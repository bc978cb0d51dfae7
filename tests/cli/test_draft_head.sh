# A file with a draft head: inspect and plan say so, run uses it, and the text is the same with --no-draft.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
EBB=${EBB:-build/release/ebb}
[ -f ../shared/tools/golden.py ] || { echo "no ../shared/tools/golden.py"; exit 77; }
XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
export XDG_CACHE_HOME XDG_CONFIG_HOME
fail() { echo "$*"; exit 1; }
ebb() { "$EBB" "$@" </dev/null; }
value() { sed "s/.*\"$1\": *\([^,}]*\).*/\1/" "$2"; }
model=$dir/head.gguf
/usr/bin/python3 ../shared/tools/golden.py model ../shared/golden-next/tiny-qwen35-mtp-Q8_0 "$model" >"$dir/log" 2>&1 ||
    { echo "no /usr/bin/python3 with numpy to write a model: $(tail -n 1 "$dir/log")"; exit 77; }
say="-p once -n 40 --ctx 128 --no-kv-cache"

ebb inspect gguf -m "$model" >"$dir/out" || fail "inspect gguf"
grep -q '^draft head: layer 4, ' "$dir/out" || fail "inspect says: $(head -n 3 "$dir/out")"
ebb inspect gguf -m "$model" --json >"$dir/json" || fail "inspect gguf --json"
[ "$(value draft_head_bytes "$dir/json")" -gt 0 ] || fail "no bytes of the head"
ebb plan -m "$model" >"$dir/out" || fail plan
grep -Eq '^draft head in the file \(.*\): (.* tok/s are expected if 75 % of its draft tokens|no gain is expected)' "$dir/out" ||
    fail "the plan says: $(cat "$dir/out")"

ebb run -m "$model" $say --temp 1 --seed 3 --no-draft >"$dir/without" || fail "run --no-draft"
ebb run -m "$model" $say --temp 1 --seed 3 --draft-tokens 3 --json >"$dir/json" || fail "run --json"
[ "$(value drafted "$dir/json")" -gt 0 ] || fail "nothing was guessed: $(cat "$dir/json")"
ebb run -m "$model" $say --temp 1 --seed 3 --draft-tokens 3 >"$dir/with" || fail run
cmp "$dir/with" "$dir/without" || fail "another text"
exit 0
