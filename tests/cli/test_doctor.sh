# ebb doctor and the described machine of ebb plan.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$EBB" doctor >"$dir/text"
for key in memory cgroup swap cpu 'file system' disk fits; do
    grep -q "^$key " "$dir/text" || { echo "no line for $key"; cat "$dir/text"; exit 1; }
done
"$EBB" doctor --json >"$dir/json"
for key in findings figures memory_bytes_s total_bytes; do
    grep -q "\"$key\"" "$dir/json" || { echo "no $key in the object"; exit 1; }
done
"$EBB" doctor -m "$dir/none.gguf" 2>/dev/null && { echo "a missing file is no error"; exit 1; }
"$EBB" plan --disk fast 2>"$dir/err" && exit 1
grep -q -- '--disk fast' "$dir/err"

# What is measured with keeps to --ram; without it, it is a few hundred MB.
if command -v python3 >/dev/null; then
    peak() {
        rm -rf "$dir/fresh"
        XDG_CACHE_HOME=$dir/fresh python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$EBB" doctor "$@"
    }
    usual=$(peak) kept=$(peak --ram 64M)
    [ "$usual" -lt 280000 ] || [ $((kept + 150000)) -lt "$usual" ] || { echo "--ram 64M: $kept KB, without: $usual KB"; exit 1; }
fi

# What is remembered is listed with its age, and a lower measurement beside other work does not displace it.
XDG_CACHE_HOME=$dir/cache
export XDG_CACHE_HOME
"$EBB" doctor -m guide >"$dir/text" && grep -q '^model .*tier full' "$dir/text" || { echo "the guide is no model"; cat "$dir/text"; exit 1; }
"$EBB" doctor >/dev/null
if [ -s "$dir/cache/ebb/speeds" ]; then
    sed 's/\(\tweights Q4_K\t\)[^\t]*/\11e12/' "$dir/cache/ebb/speeds" >"$dir/speeds"
    cp "$dir/speeds" "$dir/cache/ebb/speeds"
    "$EBB" doctor >"$dir/text"
    grep -q '^remembered .*seen last' "$dir/text" || { echo "nothing is remembered"; cat "$dir/text"; exit 1; }
    ! grep -q 'weights Q4_K' "$dir/speeds" || grep -q 'weights Q4_K: 1000.00 GB/s' "$dir/text" || { echo "the figure was lost"; cat "$dir/text"; exit 1; }
    "$EBB" doctor --measure >"$dir/text"
    grep -q 'weights Q4_K: ' "$dir/text" || ! grep -q 'weights Q4_K' "$dir/speeds" || { echo "no figure after --measure"; exit 1; }
fi

# K and V that others may have put there are not used, and that is said.
mkdir -p "$dir/cache/ebb/kv"
chmod 700 "$dir/cache/ebb/kv"
"$EBB" doctor >"$dir/text"
! grep -q '^kv cache' "$dir/text" || { echo "a folder of our own is refused"; cat "$dir/text"; exit 1; }
chmod 777 "$dir/cache/ebb/kv"
"$EBB" doctor >"$dir/text"
grep -q '^kv cache .*chmod 700' "$dir/text" || { echo "nothing about the folder of K and V"; cat "$dir/text"; exit 1; }

# Without -m that one is taken which was chosen last, not the best.
mkdir "$dir/m"
cp models/guide.gguf "$dir/m/a.gguf"; cp models/guide.gguf "$dir/m/b.gguf"
for name in b a; do
    EBB_MODELS=$dir/m XDG_STATE_HOME=$dir/state XDG_DATA_HOME=$dir/data XDG_CONFIG_HOME=$dir/config "$EBB" --plain -m $name -n 1 </dev/null >/dev/null
    EBB_MODELS=$dir/m XDG_STATE_HOME=$dir/state XDG_DATA_HOME=$dir/data XDG_CONFIG_HOME=$dir/config "$EBB" doctor >"$dir/text"
    grep -q "^models .*without -m took $name.gguf, as last time" "$dir/text" || { echo "it is not $name"; cat "$dir/text"; exit 1; }
done

# Of a reason that is long, whole clauses.
models_line() {
    mkdir -p "$dir/state/ebb"
    printf '%s' "$dir/m/$1.gguf" >"$dir/state/ebb/model"
    EBB_MODELS=$dir/m XDG_STATE_HOME=$dir/state XDG_DATA_HOME=$dir/data XDG_CONFIG_HOME=$dir/config "$EBB" doctor | grep '^models '
}
models_line gone-since-it-was-chosen-last >"$dir/text"
grep -q 'is not used: .*; took .* tok/s' "$dir/text" || { echo "half a reason"; cat "$dir/text"; exit 1; }
models_line "$(printf '%0240d' 0)" >"$dir/text"
grep -q ' is not used: [^;]*$' "$dir/text" || { echo "half a clause"; cat "$dir/text"; exit 1; }
