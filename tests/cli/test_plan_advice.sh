#!/bin/sh
# A model that is streamed more slowly than one reads: the plan says what would hold it, and how it can answer here.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-advice-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$1"; cat "$dir/out"; exit 1; }
export XDG_CONFIG_HOME="$dir" XDG_STATE_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir" LC_ALL=C.UTF-8
$EBB plan -m guide --memory 10G >"$dir/out" 2>&1 || fail "plan of the guide"
grep -q "slower than reading speed" "$dir/out" && fail "advice for a model that is in memory"
python3 - "$dir/big.gguf" <<'P' || exit 1
import sys
sys.path.insert(0, "tests/support")
import shape_gguf as g
E, L, F, V = 4096, 24, 14336, 32000
t = {"token_embd.weight": ([E, V], "Q8_0"), "output_norm.weight": ([E], "F32"), "output.weight": ([E, V], "Q8_0")}
for i in range(L):
    for n, d in ("attn_q", [E, E]), ("attn_k", [E, 1024]), ("attn_v", [E, 1024]), ("attn_output", [E, E]), ("ffn_gate", [E, F]), ("ffn_up", [E, F]), ("ffn_down", [F, E]):
        t[f"blk.{i}.{n}.weight"] = (d, "Q8_0")
    for n in "attn_norm", "ffn_norm":
        t[f"blk.{i}.{n}.weight"] = ([E], "F32")
g.write(sys.argv[1], {"general.architecture": "llama", "llama.block_count": L, "llama.embedding_length": E, "llama.feed_forward_length": F,
    "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.context_length": 8192, "llama.vocab_size": V,
    "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": {"array_len": V}}, t)
P
$EBB plan -m "$dir/big.gguf" --ram 2G --disk 1G --memory 10G >"$dir/out" 2>&1 || fail "plan of a large one"
grep -Eq "slower than reading speed \(5 tok/s\); a machine with [0-9.]+ GiB to spare holds all of it.*ebb --host USER@BOX" "$dir/out" || fail "no advice"
$EBB plan -m "$dir/big.gguf" --ram 2G --disk 100G --memory 400G >"$dir/out" 2>&1 || fail "plan with a fast disk"
grep -q "slower than reading speed" "$dir/out" && fail "advice where the disk is fast enough"
exit 0
