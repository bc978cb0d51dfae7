# ebb sessions delete, purge: nothing of what was said is left on the disk, in text or in token ids.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
HOME=$dir/home; export HOME
unset XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME EBB_MODELS
mkdir "$HOME"
secret="zanzibar quokka fjord"

i=0
while [ $i -lt 50 ]; do
    printf '{"messages": [{"role": "user", "content": "Sentence %d of the xylophon affair"},{"role": "assistant", "content": "Reply %d about kumquats"}]}' $i $i >"$dir/$i.json"
    $EBB sessions import "$dir/$i.json" "planted$i" >/dev/null || fail "import $i"
    i=$((i + 1))
done
cat >"$dir/stays.json" <<'EOF'
{"messages": [
{"role": "user", "content": "What stays?"},
{"role": "assistant", "content": "This marmalade does."},
{"role": "user", "content": "/etc is what?"},
{"role": "user", "content": "a.c:\n```c\nint a;\n```\n\nWhat is @a.c?"},
{"role": "user", "content": "Quoted."},
{"role": "user", "content": "!ls says what?"},
{"role": "user", "content": " !pwd says what?"},
{"role": "user", "content": "\"\"\"What are these?"},
{"role": "user", "content": "Sum up: pasted."}]}
EOF
$EBB sessions import "$dir/stays.json" stays >/dev/null || fail "import"
mkdir -p "$HOME/.local/state/ebb"
printf '%s\n' 'Sentence 3 of the xylophon affair' 'What is @xylophon?' '//xylophon' '"""xylophon"""' \
    >"$HOME/.local/state/ebb/history"
# The last one has the marks that a paste has there.
printf '%b\n' 'What stays?' '//etc is what?' 'What is @a.c?' '"""Quoted."""' \
    ' !ls says what?' ' !pwd says what?' ' """What are these?' \
    'Sum up: \0364\0217\0277\0276pasted.\0364\0217\0277\0277' >"$dir/stays.history"
cat "$dir/stays.history" >>"$HOME/.local/state/ebb/history"
echo "copied xylophon" | tee "$HOME/.local/state/ebb/copy.txt" >"$HOME/.local/state/ebb/copy.txt.0123456789abcdef.new"      # of one that was killed
mkdir -m 700 "$HOME/.local/state/ebb/run"                  # what an editor had with --private, of one that was killed
echo "lent xylophon" >"$HOME/.local/state/ebb/run/ebb-draft-abcdef.md"
: >"$HOME/.local/state/ebb/run/.ebb-draft-abcdef.md.lock"
printf 'what an editor has saved later' >"$HOME/.local/state/ebb/run/ebb-draft-later1.md"
printf 'planted1\nan unsent xylophon' >"$HOME/.local/state/ebb/draft-1"
printf 'stays\nunsent marmalade' >"$HOME/.local/state/ebb/draft-2"
grep -rqa xylophon "$HOME/.local/state/ebb/sessions.db" "$HOME/.local/state/ebb/sessions.db-wal" 2>/dev/null || fail "the test does not see the database"

# A conversation with the guide: K and V on the disk, with token ids.
$EBB run --session asked "$secret: what are the keys of this program, and how do I leave it again?" >/dev/null 2>"$dir/err" || fail "run: $(cat "$dir/err")"
ls "$HOME"/.cache/ebb/kv/*.block >/dev/null 2>&1 || ls "$HOME"/.cache/ebb/kv/* >/dev/null 2>&1 || fail "no K and V to be deleted"

$EBB sessions delete asked || fail "delete of what was asked"
[ -z "$(find "$HOME/.cache/ebb/kv" -name '*.block' -o -name '*.tail' -o -name '*.state' -o -name '*.window*')" ] || fail "K and V stay: $(ls "$HOME/.cache/ebb/kv")"
# The same within the chat, while that may still be written.
printf '%s\n' "$secret: what are the keys of this program, and how do I leave it again?" /delete /quit >"$dir/keys"
$EBB --plain -m guide <"$dir/keys" >"$dir/out" 2>&1 || fail "chat: $(cat "$dir/out")"
grep -q 'is deleted' "$dir/out" || fail "nothing was deleted in the chat: $(cat "$dir/out")"
[ -z "$(find "$HOME/.cache/ebb/kv" -name '*.block' -o -name '*.tail' -o -name '*.state' -o -name '*.window*')" ] || fail "K and V come back: $(ls "$HOME/.cache/ebb/kv")"
i=0
while [ $i -lt 50 ]; do
    $EBB sessions delete "planted$i" || fail "delete $i"
    i=$((i + 1))
done
# In one that another process writes in: it is refused, and where it happens all the same the answer is told, not kept.
mkdir "$dir/engine"
echo kind=openai hold say=never_kept >"$dir/engine/how"
python3 tests/support/engine.py "$dir/engine" & server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
while [ ! -s "$dir/engine/port" ]; do sleep 0.02; done
$EBB run -e "http://127.0.0.1:$(cat "$dir/engine/port")" -s written "the xylophon again" >"$dir/out" 2>"$dir/err" & writer=$!
lock=
while [ ! -s "$lock" ]; do sleep 0.02; lock=$(ls "$HOME"/.local/state/ebb/sessions.db-writer-[1-9]* 2>/dev/null); done
$EBB sessions delete written 2>"$dir/refused" && fail "it was deleted under the writer's hands"
grep -q "process $writer still writes an answer in this session" "$dir/refused" || fail "$(cat "$dir/refused")"
rm "$lock"                                                   # as on a disk that has no locks
$EBB sessions delete written || fail "delete of what is written in"
echo kind=openai say=never_kept >"$dir/engine/how"
wait $writer || fail "the writer: $(cat "$dir/err")"
grep -q 'never kept' "$dir/out" || fail "its answer: $(cat "$dir/out")"
[ "$(cat "$dir/err")" = "another ebb has deleted this session: it stays deleted, and nothing more of it is saved" ] || fail "it says: $(cat "$dir/err")"
$EBB sessions show written 2>/dev/null && fail "what was deleted is there again"
[ -z "$($EBB sessions search never)" ] || fail "what was said since is kept"
# Where K and V cannot be looked through, the words of what is deleted leave the index all the same.
$EBB sessions import "$dir/0.json" again >/dev/null || fail "import again"
: >"$dir/kv" && mkdir "$dir/ebb" && mv "$dir/kv" "$dir/ebb/kv"
XDG_CACHE_HOME=$dir $EBB sessions delete again 2>"$dir/err" && fail "K and V could not be looked through"
grep -q "$dir/ebb/kv" "$dir/err" || fail "its message: $(cat "$dir/err")"
for word in xylophon kumquat; do
    found=$(grep -lai "$word" "$HOME"/.local/state/ebb/sessions.db*) && fail "$word is still in $found"
done
# The name changes while a program has the draft, which has to be found all the same.
$EBB sessions rename stays once && flock "$HOME/.local/state/ebb/draft-2" $EBB sessions rename once twice || fail "rename"
$EBB sessions purge >/dev/null 2>"$dir/err" || fail "purge"
grep -q 'run/ebb-draft-later1.md: an editor has left it' "$dir/err" && [ "$(wc -l <"$dir/err")" = 1 ] || fail "purge says: $(cat "$dir/err")"
[ -e "$HOME/.local/state/ebb/run/ebb-draft-later1.md" ] || fail "what may be all that there is of a text is gone"
for word in xylophon kumquat zanzibar quokka; do
    found=$(grep -rlai "$word" "$HOME") && fail "$word is still in $found"
done
$EBB sessions search marmalade | grep -q This || fail "what stays cannot be found"
grep -q marmalade "$HOME/.local/state/ebb/draft-2" || fail "the draft of a session that stays is gone"
cmp -s "$dir/stays.history" "$HOME/.local/state/ebb/history" ||
    fail "the history is not that of the session that stays: $(cat "$HOME/.local/state/ebb/history")"
exit 0
