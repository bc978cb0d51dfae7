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
