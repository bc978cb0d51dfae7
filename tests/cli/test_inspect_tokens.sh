# ebb inspect tokens and text: ids of standard input, and back to the same bytes.
shared=${EBB_SHARED:-../shared}
small=$shared/data/models/stories260K.gguf
large=$shared/data/tokenizers/vocab-llama3.2.gguf
[ -r "$small" ] && [ -r "$large" ] || { echo "no $shared/data"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }

expect() {  # WANT GOT
    [ "$1" = "$2" ] || fail "expected '$1', got '$2'"
}
expect "1 403 407 261 378" "$(printf 'Once upon a time' | $EBB inspect tokens -m "$small")"
expect "403 407 261 378" "$(printf 'Once upon a time' | $EBB inspect tokens -m "$small" --no-bos)"
printf "403\000407" | $EBB inspect text -m "$small" >"$dir/out" 2>"$dir/err" && fail "ids behind a zero byte are passed over"
grep -q "^ebb: standard input: a zero byte is among the ids" "$dir/err" || fail "a zero byte: $(cat "$dir/err")"
expect " Once upon a time" "$(echo 403 407 261 378 | $EBB inspect text -m "$small")"
expect "128000 128009" "$(printf '<|eot_id|>' | $EBB inspect tokens -m "$large" --bos)"
expect "1 403 407 261 378" "$(printf 'Once upon a time' | $EBB inspect tokens -m "$small" --no-bos --bos)"
mkdir -p "$dir/config/ebb" && echo 'no-bos = on' >"$dir/config/ebb/config"
expect "403 407 261 378" "$(printf 'Once upon a time' | XDG_CONFIG_HOME=$dir/config $EBB inspect tokens -m "$small")"
expect "1 403 407 261 378" "$(printf 'Once upon a time' | XDG_CONFIG_HOME=$dir/config $EBB inspect tokens -m "$small" --bos)"
expect "27 91 68 354 851 91 29" "$(printf '<|eot_id|>' | $EBB inspect tokens -m "$large" --no-bos --no-special)"
expect "" "$(printf '' | $EBB inspect tokens -m "$large" --no-bos)"

cp "$shared/data/unicode/UTF-8-test.txt" "$dir/in" || fail "copy"
$EBB inspect tokens -m "$large" --no-bos <"$dir/in" | $EBB inspect text -m "$large" >"$dir/out" || fail "there and back"
cmp "$dir/in" "$dir/out" || fail "the text changed on the way"

echo 128256 | $EBB inspect text -m "$large" 2>"$dir/err" && fail "an id too large was accepted"
grep -q 128256 "$dir/err" || fail "the id is not named"
$EBB inspect tokens -m "$small" Once upon </dev/null 2>"$dir/err" && fail "words were passed over"
expect "ebb: Once: unexpected argument; inspect tokens reads its text from standard input" "$(cat "$dir/err")"
echo 1 x | $EBB inspect text -m "$large" 2>/dev/null && fail "a word was accepted as an id"
exit 0
