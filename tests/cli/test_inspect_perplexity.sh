# ebb inspect perplexity: the figure of llama-perplexity for the same text and model; refusals.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
shared=$(cd ../shared 2>/dev/null && pwd)
cd "$(dirname "$EBB")" && EBB=$PWD/$(basename "$EBB") && cd "$dir" || exit 1

fail() { echo "$1"; exit 1; }

"$EBB" inspect perplexity -m nothing.gguf 2>err && fail "no text and no failure"
grep -q -- '-f FILE' err || fail "no text: $(cat err)"

model=$shared/data/models/stories260K.gguf
[ -f "$model" ] || { echo "no ../shared/data/models/stories260K.gguf"; exit 77; }
awk 'BEGIN {
    split("Lily,Tom,Max,the dog,a little girl,his friend,her mom", who, ",")
    split("wanted to play,went to the park,saw a big tree,found a red ball,said hello,ran home,felt sad", did, ",")
    split("in the sun,and smiled,because it was late,all day long,with a cat", how, ",")
    for (i = 0; i < 150; i++)
        printf "%s%s %s %s.%s", i % 9 ? "" : "Once upon a time, ", who[i * 5 % 7 + 1], did[i * 3 % 7 + 1], how[i * 2 % 5 + 1], i % 7 == 6 ? "\n" : " "
}' > text
"$EBB" inspect perplexity -m "$model" -f text --ctx 128 --json > out || fail "perplexity failed"
# llama-perplexity -c 128: PPL = 8.2504
sed 's/.*"perplexity": \([0-9.]*\).*/\1/' out | awk '{ exit !($1 > 8.2504 * 0.999 && $1 < 8.2504 * 1.001) }' ||
    fail "not within a thousandth of 8.2504: $(cat out)"
echo hello > short
"$EBB" inspect perplexity -m "$model" -f short 2>err && fail "a short text and no failure"
grep -q 'fewer than a window of 512' err || fail "a short text: $(cat err)"
