#!/bin/sh
# ebb ollama: a worked example to the printed digit, the variables, what is corrected and what is refused; and all
# vectors of ../shared/data/estimate through the command line.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir" XDG_STATE_HOME="$dir" XDG_CACHE_HOME="$dir" EBB_MODELS=
unset OLLAMA_NUM_PARALLEL OLLAMA_CONTEXT_LENGTH OLLAMA_FLASH_ATTENTION OLLAMA_KV_CACHE_TYPE OLLAMA_GPU_OVERHEAD OLLAMA_SCHED_SPREAD
command -v python3 >/dev/null || exit 77
PYTHONPATH=tests/support python3 - "$EBB" "$dir" <<'PYTHON'
import json, os, subprocess, sys
import shape_gguf

EBB, DIR = sys.argv[1:3]


def ollama(model, *options, env=None, command=("ollama",)):
    """What it prints, or its one line of complaint."""
    r = subprocess.run([EBB, *command, "-m", model, *options], capture_output=True, text=True, env={**os.environ, **(env or {})})
    return r.stdout if r.returncode == 0 else r.stderr


def figures(model, *options, env=None):
    text = ollama(model, *options, "--json", env=env)
    return json.loads(text) if text.startswith("{") else {"error": text}


def expect(what, text, *parts):
    for part in parts:
        if part not in text:
            sys.exit(f"{what}: no '{part}' in\n{text}")


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got}, expected {want}")


def shape(arch, n_layers, width, ff, heads, kv_heads, vocab, train, **more):
    kv = width // heads * kv_heads
    parts = {"attn_norm": ([width], "F32"), "attn_q": ([width, width], "Q4_0"), "attn_k": ([width, kv], "Q4_0"),
             "attn_v": ([width, kv], "Q4_0"), "attn_output": ([width, width], "Q4_0"), "ffn_gate": ([width, ff], "Q4_0"),
             "ffn_up": ([width, ff], "Q4_0"), "ffn_down": ([ff, width], "Q4_0")}
    tensors = {"token_embd.weight": ([width, vocab], "Q6_K"), "output_norm.weight": ([width], "F32")}
    for i in range(n_layers):
        tensors |= {f"blk.{i}.{name}.weight": part for name, part in parts.items()}
    metadata = {"general.architecture": arch, f"{arch}.block_count": n_layers, f"{arch}.embedding_length": width,
                f"{arch}.feed_forward_length": ff, f"{arch}.context_length": train, f"{arch}.attention.head_count": heads,
                f"{arch}.attention.head_count_kv": kv_heads, "tokenizer.ggml.tokens": {"array_len": vocab}}
    path = f"{DIR}/{arch}.gguf"
    shape_gguf.write(path, metadata | {f"{arch}.{k}": v for k, v in more.items()}, tensors)
    return path


# Command-R 35B, 32000 tokens, on a card of 24 GiB: the published example.
command_r = shape("command-r", 40, 8192, 24576, 64, 8, 256000, 131072)
text = ollama(command_r, "--ctx", "32000", "--gpu", "24G")
expect("example", text, "24 - 4.88 - 5.01 - 0.5 = 13.61; 13.61 / 19 = 71.6 %", "17%/83% CPU/GPU", "34 of 41 layers",
       "layers 6-39", "split between cards and CPU")
p = figures(command_r, "--ctx", "32000", "--gpu", "24G")["predict"]
same("on paper", (round(p["on_paper"]["available_gib"], 2), round(100 * p["on_paper"]["ratio"], 1)), (13.61, 71.6))
huge = ["--ctx", "100000000", "--parallel", "100000000", "--batch", "100000000"]      # sums of these would wrap to anything
expect("huge", ollama(command_r, *huge, "--gpu", "24G", "--exact", "--json"), "more than can be counted: give less of each")
same("exact", (p["available_for_weights"], p["layers"], p["splits"]), (14591424512, 31, True))
expect("plan --ollama", ollama(command_r, "--ctx", "32000", "--gpu", "24G", "--ollama", "--json", command=("plan",)), '"predict"', '"plan":{"tier":')

# What ebb cannot run has Ollama's estimate all the same, in both forms, and then ebb's own complaint.
unknown = shape("qwen9", 2, 64, 128, 4, 4, 256, 512)
for form in ("--json",), ():
    r = subprocess.run([EBB, "plan", "--ollama", "-m", unknown, *form], capture_output=True, text=True)
    same(f"unknown architecture {form}", (r.returncode, r.stderr.count("\n"), len(r.stdout) > 99), (1, 1, True))
    if form:
        same("its plan", [json.loads(r.stdout)[key] for key in ("architecture", "plan")], ["qwen9", None])

most = json.loads(ollama(command_r, "--ctx", "max", "--ollama", "--json", command=("plan",)))
same("plan --ollama --ctx max", (most["ctx"], most["notes"] if "notes" in most else []), (131072, []))
same("and --exact", json.loads(ollama(command_r, "--ctx", "max", "--exact", "--ollama", "--json", command=("plan",)))["ctx"], 131072)

# Several cards, libraries, integrated ones; layers by card.
text = ollama(command_r, "--ctx", "2048", "--gpu", "12G,12G:rocm,16G:vulkan:integrated", "--num-gpu", "3")
expect("cards", text, "card 1, ROCm", "card 2, Vulkan, integrated", "layers 37-39", "3 of 41 layers")
expect("library", ollama(command_r, "--gpu", "8G:opencl"), "opencl", "cuda, rocm")
expect("full", ollama(command_r, "--gpu", "8G", "--require-full"), "all are required")
expect("cpu", ollama(command_r, "--gpu", "8G", "--ram", "4G"), "left to the CPU")
spread = figures(command_r, "--ctx", "2048", "--gpu", "24G,24G")["gpu_bytes"], figures(command_r, "--ctx", "2048", "--gpu", "24G,24G", "--spread")["gpu_bytes"]
same("spread", (min(spread[0]) == 0, min(spread[1]) > 0), (True, True))
free = [figures(command_r, "--ctx", "2048", "--gpu", "20G", *o)["layers_on_gpu"] for o in ((), ("--overhead", "3G"), ("--projector", "3G"), ("--projector", command_r))]
same("overhead and projector", (free[0] > free[1], free[0] > free[2], free[3]), (True, True, 0))
same("a projector in the home", figures(command_r, "--ctx", "2048", "--gpu", "20G", "--projector", "~/command-r.gguf", env={"HOME": DIR})["layers_on_gpu"], 0)

# The variables, and options over them.
env = {"OLLAMA_NUM_PARALLEL": "4", "OLLAMA_CONTEXT_LENGTH": "8192", "OLLAMA_FLASH_ATTENTION": "1", "OLLAMA_KV_CACHE_TYPE": "q8_0",
       "OLLAMA_GPU_OVERHEAD": "1073741824", "OLLAMA_SCHED_SPREAD": "1"}
pick = lambda f: [f[k] for k in ("parallel", "ctx", "flash", "kv_type", "gpu_overhead", "spread")]
same("variables", pick(figures(command_r, env=env)), [4, 8192, True, "q8_0", 1 << 30, True])
same("options", pick(figures(command_r, "--parallel", "2", "--ctx", "1024", "--flash", "on", "--kv", "q4_0", "--overhead", "0", env=env)),
     [2, 1024, True, "q4_0", 0, True])

# What Ollama corrects is corrected, and said.
f16, q8 = figures(command_r, "--ctx", "8192")["kv_total"], figures(command_r, "--ctx", "8192", "--kv", "q8_0", "--flash", "on")["kv_total"]
got = figures(command_r, "--ctx", "8192", "--kv", "q8_0", "--flash", "off")
same("q8_0 without flash attention", (got["kv_total"], got["kv_type"], q8 * 2), (f16, "f16", f16))
expect("its note", " ".join(got["notes"]), "flash attention, which is off")
same("the same, exact", figures(command_r, "--ctx", "8192", "--kv", "q8_0", "--flash", "off", "--exact")["kv_total"], q8)
got = figures(command_r, "--ctx", "200000")
same("beyond training", got["ctx"], 131072)
expect("its note", " ".join(got["notes"]), "trained for 131072")
got = figures(shape("mllama", 2, 512, 1024, 8, 8, 1000, 8192), "--parallel", "4", "--ctx", "4096")
same("mllama", got["parallel"], 1)
expect("its notes", " ".join(got["notes"]), "Ollama takes one with mllama", "its own engine")
got = figures(shape("gemma2", 2, 512, 1024, 8, 8, 1000, 8192), "--flash", "on")
same("gemma2", (got["flash"], got["needs_ollama_engine"]), (False, False))
same("an old card", figures(command_r, "--flash", "on", "--gpu", "24G:cuda:no-flash")["flash"], False)

# What would say nothing is refused.
expect("two types", ollama(command_r, "--kv", "q8_0/q4_0"), "one type for both K and V")
expect("--gpu alone", ollama(command_r, "--gpu", "24G", command=("plan",)), "belongs to Ollama's estimate")
expect("--num-gpu", ollama(command_r, "--num-gpu", "some"), "number of layers")
os.remove(command_r)

# -- The vectors ----------------------------------------------------------------------------
vectors = "../shared/data/estimate/vectors.json"
if not os.path.exists(vectors):
    sys.exit(77)
data = json.load(open(vectors))


def model_of(name):
    path = f"{DIR}/{name}.gguf"
    if not os.path.exists(path):
        shape_gguf.write(path, data["models"][name]["metadata"], data["models"][name]["tensors"])
    return path


def load_options(v):
    return ["--exact", "--ctx", str(v["ctx"]), "--batch", str(v["batch"]), "--parallel", str(v["parallel"]), "--kv", v["kv_type"],
            "--flash", "on" if v["flash"] else "off"]


def check(v, got):
    for key, want in v["expect"].items():
        if key in ("partial", "full") and "assign" in v["expect"]:
            key = "resolved_" + key                  # a layout names what placement uses
        same(f'{v["id"]} {key}', got.get(key), want)


for v in data["graph_vectors"]:
    check(v, figures(model_of(v["model"]), *load_options(v)))
for v in data["layout_vectors"]:
    cards = ",".join(f'{g["free"]}:{g["library"]}' + (":integrated" if g["integrated"] else "") for g in v["gpus"])
    options = ["--gpu", cards, "--num-gpu", str(v["num_gpu"]), "--overhead", str(v["overhead"]), "--projector", str(v["projector"])]
    options += ["--spread"] * v["spread"] + ["--require-full"] * v["require_full"]
    got = figures(model_of(v["model"]), *load_options(v), *options)
    if "error" in v["expect"]:
        expect(v["id"], got.get("error", ""), "required")
    else:
        check(v, got)
for v in data["predict_vectors"]:                    # of a model that has these sums
    a = v["args"]
    twin = next(l for l in data["layout_vectors"] + data["graph_vectors"] if all(l["expect"].get(k) == a[w] for k, w in
                (("kv_total", "kv_total"), ("partial", "graph_partial"), ("full", "graph_full"))))
    got = figures(model_of(twin["model"]), *load_options(twin), "--gpu", str(a["vram"]))
    same(f'{v["id"]} weights and buffer', (got["weights"], got["buffer"]), (a["weights"], a["buffer"]))
    p, want = got["predict"], v["expect"]
    same(v["id"], [p[k] for k in ("total", "splits", "available_for_weights", "layers")],
         [want[k] for k in ("total", "splits", "available_for_weights", "layers")])
    same(f'{v["id"]} ratio', abs(p["gpu_ratio_weights"] - want["gpu_ratio_weights"]) < 1e-9, True)
for v in data["option_vectors"]:
    a, options = v["args"], []
    for key, option in (("num_ctx", "--ctx"), ("batch", "--batch")):
        options += [option, str(a[key])] if key in a else []
    options += ["--vision"] * a.get("vision", False)
    card = str(a.get("total_vram", 1 << 30)) + ("" if a.get("flash_ok_on_gpus", True) else ":cuda:no-flash")
    got = figures(model_of(v["model"]), *options, "--gpu", card, env=v["env"])
    check(v, got | {"num_ctx": got["ctx"]})
counts = [len(data[k]) for k in ("graph_vectors", "layout_vectors", "predict_vectors", "option_vectors")]
print(f"{sum(counts)} vectors through the command line: {counts}")
PYTHON
