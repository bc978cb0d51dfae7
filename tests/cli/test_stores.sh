#!/bin/sh
# Models in the stores of other programs: found, named, loaded, left as they are; nothing outside a store is found by it.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
h=$dir/home
fail() { echo "$*"; exit 1; }
status() { want=$1; shift; "$@" >out 2>err </dev/null; got=$?; [ $got -eq "$want" ] || fail "exit $got, not $want: $* ($(cat err))"; }
snapshot() { (cd "$h" && find .ollama .cache/huggingface .cache/llama.cpp .cache/lm-studio .lmstudio .local/share/Jan .local/share/nomic.ai outside \
    -printf '%p %y %s %m %T@ %l\n' | sort; find . -type f ! -path './.cache/ebb/*' -exec sha256sum {} + | sort); }

python3 tests/support/split_gguf.py models/guide.gguf 3 "$dir/part" || exit 1
python3 tests/support/stores.py models/guide.gguf "$h" "$dir"/part-*.gguf || exit 1
"$EBB" run -m guide --greedy -n 12 'how do I leave ebb' >"$dir/want" 2>/dev/null </dev/null || fail "no answer to compare with"
cd "$dir" || exit 1
export HOME="$h" XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir/c"
unset EBB_MODELS XDG_CACHE_HOME XDG_DATA_HOME OLLAMA_MODELS HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE LLAMA_CACHE
mkdir -p "$h/.local/share/ebb" "$h/.cache/ebb"
snapshot >before

# All are listed, once, with whose they are.
status 0 "$EBB" models
cp out list
status 2 "$EBB" models llama
grep -q '^ebb: llama: unexpected argument; ebb models lists all' err || fail "a word behind models: $(cat err)"
listed() { grep -F "$1" list | grep -qF "$2" || fail "not listed: $1 $2: $(cat list)"; }
listed 'llama3.2  ' "(Ollama's)"
listed 'hf.co/someone/Some-GGUF:Q4_K_M  ' "(Ollama's)  text alone"
listed '  newer  ' "(Ollama's)"
listed '  me/listed:8b  ' "(Ollama's)"
listed 'nomic-embed-text  ' 'embedder, not for a chat'
listed "snapshots/$(printf 'c%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40)/Hub-Q8_0.gguf" "(Hugging Face's)"
listed 'folder/Deep-Q8_0.gguf' "(Hugging Face's)"
listed 'Split-00001-of-00003.gguf' "(Hugging Face's)"
listed 'mmproj-F16.gguf' 'projector, not for a chat'
listed 'embed.gguf' 'embedder, not for a chat'
listed 'eagle.gguf' 'drafter, not for a chat'
listed 'mtp.gguf' 'drafter, not for a chat'
listed 'lora.gguf' 'adapter, not for a chat'
listed 'cvec.gguf' 'adapter, not for a chat'
listed 'imatrix.gguf' 'importance matrix, not for a chat'
listed 'vocab.gguf' 'vocabulary, not for a chat'
listed 'owner_repo_Cached-Q8_0.gguf' "(llama.cpp's)"
listed 'Studio-GGUF/Studio-Q8_0.gguf' "(LM Studio's)"
listed 'Older-Q8_0.gguf' "(LM Studio's)"
listed 'janhq/Jan-v3  ' "(Jan's)"
listed 'Everybody-Q8_0.gguf' "(GPT4All's)"
[ "$(grep -c "'s)" list)" -eq 21 ] || fail "$(grep -c "'s)" list) files, not 21: $(cat list)"
grep -q 'hostile\|outside\|Again' list && fail "found what lies outside, or twice: $(cat list)"

# Each of them is loaded by its name, and answers as the model does.
for name in llama3.2 llama3.2:latest LLAMA3.2:3b-instruct llama3.2:3b hf.co/someone/Some-GGUF:Q4_K_M newer me/listed:8b Hub-Q8_0 deep Split cached \
    Studio-Q8_0.gguf Again-Q8_0 Older janhq/Jan-v3 jan-v3 everybody; do
    status 0 "$EBB" run -m "$name" --greedy -n 12 'how do I leave ebb'
    cmp -s out want || fail "-m $name answers: $(cat out err)"
done
status 1 "$EBB" run -m mmproj-F16 hello
grep -qF 'not a chat model but another kind of file: projector' err || fail "a projector: $(cat err)"
status 1 "$EBB" run -m hostile0 hello
status 1 "$EBB" run -m someone/nothing hello
grep -qF 'someone/nothing: no such file' err || fail "a name with a slash: $(cat err)"
status 2 "$EBB" llama3.2
grep -qF 'to talk with the model of that name: ebb -m llama3.2' err || fail "a name as a command: $(cat err)"

# What Ollama's manifest recommends is followed where nothing else was said; its system prompt is offered.
printf '/set temp\n/set top-k\n/prompt\n/prompt model\n/system\n' | "$EBB" --plain -m llama3.2 >out 2>err
grep -qF 'temp = 0.125' out || fail "temperature: $(cat out err)"
grep -qF 'top-k = 7' out || fail "top-k: $(cat out err)"
cat out err | grep -qF 'comes with a system prompt; /prompt model takes it' || fail "no word of the system prompt: $(cat out err)"
grep -qF 'You are a lighthouse.' out || fail "the system prompt: $(cat out err)"
printf '/set temp\n' | "$EBB" --plain -m llama3.2 --temp 0.75 >out 2>err
grep -qF 'temp = 0.75' out || fail "a temperature that was given: $(cat out err)"

# For a chat nothing else is offered; as JSON.
status 0 "$EBB" plan
grep -q 'mmproj\|embed\|eagle\|lora\|vocab' out && fail "a plan for what cannot chat: $(cat out)"
grep -qF 'janhq/Jan-v3' out || fail "plan: $(cat out)"
status 0 "$EBB" models --json
python3 - out <<'P' || fail "JSON"
import json, sys
m = {f["name"]: f for f in json.load(open(sys.argv[1]))["models"]}
assert m["llama3.2"]["store"] == "Ollama" and m["llama3.2"]["kind"] == "model", m
assert m["mmproj-F16.gguf"]["kind"] == "projector" and m["mtp.gguf"]["kind"] == "drafter"
P

snapshot >after
cmp -s before after || fail "a store was changed: $(diff before after)"

# Of two versions of the hub's the JSON tells the old one, which may have the later date.
hub=$dir/versions/models--o--r
mkdir -p "$hub/refs" "$hub/snapshots/0a0a" "$hub/snapshots/0b0b" || fail "no folders"
printf 0a0a | tee "$hub/refs/main" >"$hub/snapshots/0a0a/Two-Q8_0.gguf"
echo later >"$hub/snapshots/0b0b/Two-Q8_0.gguf"
touch -d '2020-01-01' "$hub/snapshots/0a0a/Two-Q8_0.gguf"
HF_HUB_CACHE=$dir/versions status 0 "$EBB" models --json
python3 - out <<'P' || fail "versions as JSON: $(cat out)"
import json, sys
m = {f["path"].split("/")[-2]: f for f in json.load(open(sys.argv[1]))["models"] if f["name"] == "Two-Q8_0.gguf"}
assert m["0b0b"]["old_version"] is True and "old_version" not in m["0a0a"], m
P

# A pipe in the place of a manifest is not read, and of a store without end no more than a start has time for.
many=$dir/many/manifests/registry.ollama.ai/library
mkdir -p "$many/piped" "$many/more"
cp -r "$h/.ollama/models/blobs" "$dir/many"
mkfifo "$many/piped/latest"
cat "$h/.ollama/models/manifests/registry.ollama.ai/library/llama3.2/latest" >"$many/piped/latest" &
writer=$!
OLLAMA_MODELS=$dir/many status 0 "$EBB" models
grep -q piped out && fail "a pipe was read: $(cat out)"
kill $writer 2>/dev/null
rm "$many/piped/latest"
(cd "$many/more" && seq -f t%.0f 10001 | xargs touch)
OLLAMA_MODELS=$dir/many status 0 "$EBB" models --trace "$dir/trace"
grep -q 'more than 10000 manifests; the others are left out' "$dir/trace" || fail "a store without end: $(tail -3 "$dir/trace")"

# A variable names another place, and then the usual one does not count.
mv "$h/.ollama/models" "$h/elsewhere"
OLLAMA_MODELS=$h/elsewhere "$EBB" models | grep -q 'llama3.2' || fail "OLLAMA_MODELS"
mv "$h/elsewhere" "$h/.ollama/models"
OLLAMA_MODELS=$h/none "$EBB" models | grep -q 'llama3.2' && fail "a store that was moved away is still read"
exit 0
