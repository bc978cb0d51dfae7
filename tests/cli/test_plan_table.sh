#!/bin/sh
# ebb plan --table, --modes, --like, --memory, --ctx max; ebb bench --modes; /set ctx; what is called otherwise elsewhere; and a folder for K and V.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir" XDG_STATE_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir" EBB_MODELS=
ran() { "$EBB" "$@" >"$dir/out" 2>&1 || { echo "failed: $*"; cat "$dir/out"; exit 1; }; }
has() { grep -qE -- "$1" "$dir/out" || { echo "lacks: $1"; cat "$dir/out"; exit 1; }; }
refused() { want=$1; shift; ! "$EBB" "$@" >"$dir/out" 2>&1 || { echo "not refused: $*"; exit 1; }; has "$want"; }

# A described machine is the same twice, and nothing is measured for it.
ran plan guide --like pi5 --json; cp "$dir/out" "$dir/first"
ran plan guide --like pi5 --json
cmp "$dir/first" "$dir/out"
[ ! -e "$dir/ebb/speeds" ] || { echo "speeds were measured"; exit 1; }
ran plan guide --like pi5; has 'like pi5'; has '4 CPUs'; has 'disk 0.40 GB/s, memory 10.0 GB/s'
ran plan guide --like pi5 --memory 20G/s --disk 1G/s -t 2 --ram 1G; has '2 CPUs'; has 'disk 1.00 GB/s, memory 20.0 GB/s'; has '1.00 GiB available'
ran plan guide --memory 30G/s; has 'memory 30.0 GB/s'
[ ! -e "$dir/ebb/speeds" ] || { echo "speeds were measured"; exit 1; }
refused 'give one of cloud, pi5' plan guide --like toaster
refused 'give a speed like' plan guide --memory fast

ran plan guide --like n100 --table; has '^ +512  full +4/4'; has '^ +2048  full +4/4'; has '^longest +2048 +2048 +2048'; has 'KV q4_0'
ran plan guide --like n100 --table --kv q8_0; has 'KV q8_0'
ran plan guide --like n100 --table --kv q8_0 --json; has '"ctx":2048,[^{]*},\{[^{]*"ctx":2048,[^{]*"longest":true\}\]'
! grep -q 'KV f16' "$dir/out"
if [ -s models/guide.gguf ]; then
    ran plan -m models/guide.gguf --like n100 --resident 2 --table --json; has '"read_bytes_per_token":[1-9]'
fi
ran plan guide --like n100 --modes; has '^balanced +2048 f16 +full'; has '^max-tps '; has '^max-context '
ran plan guide --like n100 --modes --json; has '"max-context":.*"predicted_full_tok_s"'
refused 'one at a time' plan guide --table --modes
ran plan guide --ctx max --like n100; has 'context 2048 tokens'; has 'the longest context in memory'
ran bench guide --modes -n 4 -p 8 -r 1; has '^mode +context'; has '^balanced +2048 f16 '; has '^max-context '
ran bench guide --modes -n 4 -p 8 -r 1 --json; has '"max-tps":.*"predicted_decode_tok_s"'

printf '/set ctx max\n/set ctx\n/set ctx 1000\n/set ctx 5x\n/set\n/quit\n' | "$EBB" chat -m guide --plain --ctx 512 >"$dir/out" 2>&1
has 'opened with a context of 2048 tokens'; has '^ctx = 2048 \(a number, or max\): '; has 'context of 1000 tokens'; has 'give a number of tokens, or max'

refused 'int8 is q8_0 here' run guide --kv int8 hello
refused 'maxTPS is max-tps here' run guide --mode maxTPS hello
refused 'first_n is first here' run guide --placement first_n hello
refused '--window: no such option here; models with windows' run guide --window 2048 hello
refused 'ebb uses no GPU' run guide --num-gpu 3 hello

# What docs/MEMORY.md says of a formula for resident layers and of the plan beside it, for a 9B in 5 GiB.
command -v python3 >/dev/null || exit 0
PYTHONPATH=tests/support python3 - "$EBB" "$dir/gemma-2-9b.gguf" <<'PYTHON'
import json, math, subprocess, sys
import shape_gguf

EBB, PATH = sys.argv[1:]
E, FF, HEADS, KV_HEADS, DIM, VOCAB, LAYERS, GIB = 3584, 14336, 16, 8, 256, 256000, 42, 1 << 30
metadata = {"general.architecture": "gemma2", "general.file_type": 15, "gemma2.block_count": LAYERS, "gemma2.embedding_length": E,
            "gemma2.feed_forward_length": FF, "gemma2.context_length": 8192, "gemma2.attention.head_count": HEADS,
            "gemma2.attention.head_count_kv": KV_HEADS, "gemma2.attention.key_length": DIM, "gemma2.attention.value_length": DIM,
            "gemma2.attention.layer_norm_rms_epsilon": 1e-6, "gemma2.attn_logit_softcapping": 50.0,
            "gemma2.final_logit_softcapping": 30.0, "gemma2.attention.sliding_window": 4096,
            "tokenizer.ggml.tokens": {"array_len": VOCAB}}
tensors = {"token_embd.weight": ([E, VOCAB], "Q6_K"), "output_norm.weight": ([E], "F32")}
for i in range(LAYERS):
    more = "Q6_K" if i < LAYERS // 8 or i >= 7 * LAYERS // 8 or (i - LAYERS // 8) % 3 == 2 else "Q4_K"
    for name, dims, kind in (
            ("attn_norm", [E], "F32"), ("post_attention_norm", [E], "F32"), ("ffn_norm", [E], "F32"), ("post_ffw_norm", [E], "F32"),
            ("attn_q", [E, HEADS * DIM], "Q4_K"), ("attn_k", [E, KV_HEADS * DIM], "Q4_K"), ("attn_v", [E, KV_HEADS * DIM], more),
            ("attn_output", [HEADS * DIM, E], "Q4_K"), ("ffn_gate", [E, FF], "Q4_K"), ("ffn_up", [E, FF], "Q4_K"), ("ffn_down", [FF, E], more)):
        tensors[f"blk.{i}.{name}.weight"] = (dims, kind)
shape_gguf.write(PATH, metadata, tensors)


def n_bytes(part):
    _, length, size = shape_gguf.BLOCKS[part[1]]
    return math.prod(part[0]) * size // length


layer = sum(n_bytes(p) for name, p in tensors.items() if name.startswith("blk")) / LAYERS
other = sum(n_bytes(p) for name, p in tensors.items() if not name.startswith("blk"))
modes = json.loads(subprocess.run([EBB, "plan", "-m", PATH, "--like", "cloud", "--ram", "5G", "--modes", "--json"],
                                  capture_output=True, text=True, check=True).stdout)
page = open("docs/MEMORY.md").read()
for mode, reserved in (("max-tps", 512), ("balanced", 1024), ("max-context", 8192)):
    n = (5 * GIB - other - layer - 150e6 - reserved * LAYERS * KV_HEADS * 2 * DIM * 2) / layer
    row = f'| {mode} | {reserved} | {int(n * 0.9)} | {int(n)} | {modes[mode]["ctx"]} | {modes[mode]["resident_layers"]} |'
    if row not in page or modes[mode]["kv_type"] != "q8_0":
        sys.exit(f"docs/MEMORY.md has not: {row}")
PYTHON

# A folder that others may write to gets no file of K and V, here; another machine's can be used.
spilling="plan guide --ram 36M --ctx 8192 -t 2"
ran $spilling; has 'of K and V go to a file'
mkdir -p "$dir/ebb/kv"; chmod 777 "$dir/ebb/kv"
ran $spilling; has 'needs at least'; has 'K and V cannot go to a file: .*/ebb/kv: other users may write to it; chmod 700 it'
ran $spilling --like pi5; has 'of K and V go to a file'
