# ebb --private: nothing of what is said is found on the disk afterwards.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
HOME=$dir/home; export HOME
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME EBB_MODELS
mkdir "$HOME"

$EBB run --private "Does the zanzibar quokka know how to leave this program?" >"$dir/out" 2>"$dir/err" || fail "run: $(cat "$dir/err")"
[ -s "$dir/out" ] || fail "run says nothing"
printf 'Where is the xylophon of the program?\n/quit\n' | $EBB --plain --private >"$dir/out" 2>"$dir/err" || fail "chat: $(cat "$dir/err")"
[ -s "$dir/out" ] || fail "the chat says nothing"
for word in zanzibar quokka xylophon; do
    found=$(grep -rlai "$word" "$HOME") && fail "$word is in $found"
done
[ ! -e "$HOME/.cache/ebb/kv" ] || fail "there is a folder of K and V"
[ -z "$(find "$HOME" -name 'sessions.db*' -o -name 'history' -o -name 'draft*')" ] || fail "files: $(find "$HOME")"
$EBB run --private -s name "x" 2>"$dir/err"; [ $? = 2 ] || fail "a session of a private chat"
grep -q "no session to be named" "$dir/err" || fail "its message: $(cat "$dir/err")"
exit 0
