#!/bin/sh
# --json of every command that has it: one object (of sessions: one array or object), on one line, and nothing else.
set -eu
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME
fail() { echo "$*"; exit 1; }

one() {
    "$EBB" "$@" --json </dev/null >"$dir/out" 2>"$dir/err" || fail "exit $?: ebb $*: $(cat "$dir/err")"
    [ "$(wc -l <"$dir/out")" -eq 1 ] || fail "ebb $* --json: $(wc -l <"$dir/out") lines"
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/out" || fail "ebb $*: no JSON: $(cat "$dir/out")"
}
# has FIELD...: of the object that came last; a dot leads into an object
has() {
    python3 -c '
import json, sys
top = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    at = top
    for key in name.split("."):
        if key not in at: sys.exit(name)
        at = at[key]
' "$dir/out" "$@" 2>"$dir/err" || fail "lacks the field $(cat "$dir/err"): $(cat "$dir/out")"
}
"$EBB" run -s first -n 5 -p 'What is a token?' </dev/null >/dev/null 2>&1 || fail "no session"
one run -n 5 -p 'What is a token?'
has text finish prompt_tokens reused_tokens computed_tokens generated_tokens prefill_s decode_tok_s peak_rss_bytes seed ctx kv_type layers \
    resident_layers cpu io threads disk_bytes_s stall_share drafted accepted tier
one plan
one plan -m models/guide.gguf
has tier ctx kv_type layers resident_layers total_bytes available_bytes predicted_decode_tok_s predicted_prefill_tok_s fits \
    parts.weights_resident parts.weights_ring parts.kv parts.activations parts.tokenizer parts.code parts.reserve
one bench -m models/guide.gguf -p 8 -n 2 -r 1
has prefill_tok_s decode_tok_s load_s first_token_s peak_rss_bytes kv_bytes layers resident_layers weight_bytes read_bytes_per_token \
    disk_bytes_s stall_share drafted accepted tier cpu io threads
one models
one doctor
one sessions list
one sessions search token
has hits more
one sessions replay first
has answers same tokens
one sessions export first "$dir/first.md"
has file bytes
one sessions rename first second
has id name
one sessions delete second
has id
one sessions purge
has kv_files_removed
head -c 64 /dev/urandom >"$dir/key" && chmod 600 "$dir/key"
one sessions encrypt --unlock "$dir/key"
has encrypted key_file
one sessions rekey "$dir/key" --unlock "$dir/key"
has encrypted key_file
one sessions decrypt --unlock "$dir/key"
has encrypted key_file
one engines add box http://127.0.0.1:9
has name address
one engines remove box
has name
one inspect template -m guide
has template origin
printf '{{ messages[0].content }}' >"$dir/t.jinja"
printf '{"messages":[{"role":"user","content":"hello"}]}' >"$dir/c.json"
one inspect template --file "$dir/t.jinja" --context "$dir/c.json"
has text
one inspect tokens -m guide
has tokens
one inspect text -m guide
has text
echo 1 2 3 >"$dir/ids"
one inspect logits -m guide --tokens "$dir/ids" --greedy 2
has tokens greedy out
"$EBB" stat --json >"$dir/out" 2>/dev/null || true          # 1: nothing runs
python3 -c 'import json, sys; json.load(open(sys.argv[1]))["running"]' "$dir/out" || fail "stat: $(cat "$dir/out")"
"$EBB" stop --json >"$dir/out" 2>/dev/null && fail "stop: something runs"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))["stopped"]' "$dir/out" || fail "stop: $(cat "$dir/out")"
