#!/usr/bin/python3
"""The stores of other programs, built below HOME around one model: stores.py MODEL.gguf HOME

Each layout as its program writes it; each copy of the model differs in its general.name only, so that each is a file of its own.
Beside them files that are no models for a chat, and manifests and links that lead out of their store."""
import hashlib, json, os, struct, sys

model, home = open(sys.argv[1], "rb").read(), sys.argv[2]


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def key(name, value):
    return text(name) + (struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value))


def gguf(*keys, n_tensors=1):
    """A file of these keys with one small tensor."""
    head = b"GGUF" + struct.pack("<IQQ", 3, n_tensors, len(keys)) + b"".join(key(*k) for k in keys)
    if n_tensors:
        head += text("a.weight") + struct.pack("<IQIQ", 1, 32, 0, 0)
    return head + b"\0" * (-len(head) % 32) + (b"\0" * 128 if n_tensors else b"")


def named(name):
    """The model under another name, of the same length as its own."""
    name = hashlib.sha256(name.encode()).hexdigest()
    old = b"general.name"
    at = model.index(old) + len(old) + 4
    n, = struct.unpack_from("<Q", model, at)
    return model[:at + 8] + name.encode()[:n].ljust(n) + model[at + 8 + n:]


def put(path, data):
    path = os.path.join(home, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def link(target, path):
    path = os.path.join(home, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)


# -- Ollama ----------------------------------------------------------------------------------
O = ".ollama/models/"


def blob(data):
    digest = hashlib.sha256(data).hexdigest()
    put(O + "blobs/sha256-" + digest, data)
    return {"digest": "sha256:" + digest, "size": len(data)}


def layer(kind, data):
    return {"mediaType": "application/vnd.ollama.image." + kind, **blob(data)}


def manifest(*layers):
    return json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": list(layers)}).encode()


small = layer("model", named("ollama one"))
advice = [layer("params", b'{"temperature": 0.125, "top_k": 7, "stop": ["</s>"]}'), layer("system", b"You are a lighthouse.")]
put(O + "manifests/registry.ollama.ai/library/llama3.2/latest", manifest(small, *advice))
put(O + "manifests/registry.ollama.ai/library/llama3.2/3b-instruct", manifest(small))
put(O + "manifests/hf.co/someone/Some-GGUF/Q4_K_M", manifest(layer("model", named("ollama two")), layer("projector", gguf(("general.architecture", "clip")))))
put(O + "manifests/registry.ollama.ai/library/nomic-embed-text/latest", manifest(layer("model", gguf(("general.architecture", "nomic-bert")))))
# the newer form: a link to a blob, and a list
link("../../../../blobs/" + blob(manifest(layer("model", named("ollama v2 link"))))["digest"].replace(":", "-"), O + "manifests-v2/ollama.com/library/newer/latest")
listed = blob(manifest(layer("model", named("ollama v2 list"))))
other = blob(manifest({"mediaType": "application/vnd.ollama.image.tensor", "digest": "sha256:" + "0" * 64, "size": 1}))
put(O + "manifests-v2/ollama.com/me/listed/8b", json.dumps({"schemaVersion": 2, "manifests": [
    {"runner": "mlx", "format": "safetensors", **other}, {"runner": "llama.cpp", "format": "gguf", **listed}]}).encode())

# hostile: what lies outside, and is named in every way there is
outside = put("outside/secret.gguf", named("outside"))
digest = hashlib.sha256(b"elsewhere").hexdigest()
link(outside, O + "blobs/sha256-" + digest)
size = os.path.getsize(outside)
for i, (d, n) in enumerate([("sha256:" + digest, size), ("../../../outside/secret.gguf", size), ("sha256:../../outside/secret.gguf", size),
                            ("sha256-" + "a" * 64, size), ("sha256:" + "A" * 64, size), ("sha256:" + "g" * 64, size), (outside, size),
                            (small["digest"], small["size"] - 1), (small["digest"], -1), (small["digest"], 1 << 62), (small["digest"], "many"),
                            (7, size), (None, size), ("sha256:" + "0" * 64 + "\0/../x", size)]):
    put(O + "manifests/registry.ollama.ai/library/hostile%d/latest" % i,
        json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": d, "size": n}]}).encode())
put(O + "manifests/registry.ollama.ai/library/hostile-depth/latest", b"[" * 100000)
put(O + "manifests/registry.ollama.ai/library/hostile-large/latest", b" " * (2 << 20) + manifest(small))
put(O + "manifests/registry.ollama.ai/library/hostile-types/latest", b'{"layers": {"mediaType": 3}, "manifests": 5}')
put(O + "manifests/registry.ollama.ai/library/hostile name/latest", manifest(small))
put(O + "manifests/registry.ollama.ai/library/hostile\x1b[31m/latest", manifest(small))
link(put("outside/manifest", manifest(small)), O + "manifests/registry.ollama.ai/library/hostile-link/latest")
link("hostile-loop", O + "manifests/registry.ollama.ai/library/hostile-loop")
link("..", O + "manifests/registry.ollama.ai/hostile-up")
link("../..", O + "manifests/registry.ollama.ai/library/hostile-up/latest")
os.mkfifo(os.path.join(home, O, "manifests/registry.ollama.ai/library/hostile-up/pipe"))
ring = json.dumps({"manifests": [{"format": "gguf", "runner": "llama.cpp", **listed}]}).encode()
put(O + "manifests-v2/ollama.com/library/hostile-ring/latest", json.dumps({"manifests": [{"format": "gguf", **blob(ring)}]}).encode())

# -- Hugging Face: whole, in parts, and what does not chat -----------------------------------------
H = ".cache/huggingface/hub/models--owner--Name-GGUF/"


def snapshot(path, data, commit="c" * 40):
    oid = hashlib.sha256(data).hexdigest()
    put(H + "blobs/" + oid, data)
    link("../" * (2 + path.count("/")) + "blobs/" + oid, H + "snapshots/%s/%s" % (commit, path))


put(H + "refs/main", b"c" * 40)
whole = named("hub")
snapshot("Hub-Q8_0.gguf", whole)
snapshot("Hub-Q8_0.gguf", whole, "d" * 40)
snapshot("folder/Deep-Q8_0.gguf", named("deep"))
for i, part in enumerate(sys.argv[3:]):
    snapshot("Split-%05d-of-%05d.gguf" % (i + 1, len(sys.argv) - 3), open(part, "rb").read())
snapshot("mmproj-F16.gguf", gguf(("general.architecture", "clip"), ("general.type", "mmproj")))
snapshot("embed.gguf", gguf(("general.architecture", "qwen3"), ("qwen3.pooling_type", 3)))
snapshot("eagle.gguf", gguf(("general.architecture", "eagle3")))
snapshot("mtp.gguf", gguf(("general.architecture", "glm4moe"), ("glm4moe.block_count", 1), ("glm4moe.nextn_predict_layers", 1)))
snapshot("lora.gguf", gguf(("general.architecture", "llama"), ("general.type", "adapter"), ("adapter.type", "lora")))
snapshot("cvec.gguf", gguf(("general.architecture", "controlvector"), ("controlvector.model_hint", "llama")))
snapshot("imatrix.gguf", gguf(("general.type", "imatrix")))
snapshot("vocab.gguf", gguf(("general.architecture", "llama"), n_tensors=0))
link(outside, H + "snapshots/" + "c" * 40 + "/hostile.gguf")
link("../../../../../../outside", H + "snapshots/" + "c" * 40 + "/hostile-folder")
link(".", H + "snapshots/" + "c" * 40 + "/hostile-loop")

# -- The others --------------------------------------------------------------------------------
put(".cache/llama.cpp/owner_repo_Cached-Q8_0.gguf", named("cached"))
put(".cache/llama.cpp/owner_repo_Cached-Q8_0.gguf.json", b"{}")
put(".lmstudio/models/publisher/Studio-GGUF/Studio-Q8_0.gguf", named("studio"))
put(".cache/lm-studio/models/publisher/Older-GGUF/Older-Q8_0.gguf", named("older"))
put(".local/share/Jan/data/llamacpp/models/janhq/Jan-v3/model.gguf", named("jan"))
put(".local/share/Jan/data/llamacpp/models/janhq/Jan-v3/model.yml", b"name: Jan\n")
put(".local/share/nomic.ai/GPT4All/Everybody-Q8_0.gguf", named("gpt4all"))
# the same file twice, and a ring of folders
os.link(os.path.join(home, ".lmstudio/models/publisher/Studio-GGUF/Studio-Q8_0.gguf"), os.path.join(home, ".local/share/nomic.ai/GPT4All/Again-Q8_0.gguf"))
link(".", ".lmstudio/models/ring")
