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
grep -q 'nothing of this conversation is written' "$dir/out" "$dir/err" || fail "the chat does not say that it is private"
# ... nor that it keeps anything, or that what is on the disk could be had here.
printf '/save mine\n/load open\n/quit\n' | $EBB --plain --private >"$dir/out" 2>&1 || fail "chat: $(cat "$dir/out")"
grep -q 'named mine until you leave; --private keeps nothing' "$dir/out" && ! grep -q 'saved as' "$dir/out" &&
    grep -q "no session 'open' among those in memory" "$dir/out" || fail "names in private: $(cat "$dir/out")"
for word in zanzibar quokka xylophon; do
    found=$(grep -rlai "$word" "$HOME") && fail "$word is in $found"
done
[ ! -e "$HOME/.cache/ebb/kv" ] || fail "there is a folder of K and V"
[ -z "$(find "$HOME" -name 'sessions.db*' -o -name 'history' -o -name 'draft*')" ] || fail "files: $(find "$HOME")"

# A model that has been used, with all that is kept of it: not one byte of the home is another one afterwards.
mkdir "$HOME/models" && cp models/guide.gguf "$HOME/models/small.gguf" || exit 1
m=$HOME/models/small.gguf
$EBB run -s open -m "$m" "Who may know this?" >"$dir/out" 2>"$dir/err" || fail "a run in the open: $(cat "$dir/err")"
files() { (cd "$HOME" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2); }
[ "$(files | wc -l)" -gt 1 ] || fail "in the open nothing is kept either: $(files)"
for off in '' 1; do                              # by its own doing, too, where the kernel would not see to it
    # then figures of this machine are still learned, if it happens to be quiet
    EBB_NO_SANDBOX=$off $EBB doctor 2>&1 | grep -q 'confinement .*holds: files' && learned='^$' || learned='/cache/ebb/\|/\.cache/ebb/[a-z-]*speeds\|/experts/'
    files >"$dir/before"
    EBB_NO_SANDBOX=$off $EBB run --private -m "$m" "What does the quokka keep?" >"$dir/out" 2>"$dir/err" || fail "run: $(cat "$dir/err")"
    printf 'And the xylophon?\n/why\n/models\n/undo\n/model guide\nOnce more?\n/copy\n/quit\n' |
        EBB_NO_SANDBOX=$off $EBB --plain --private -m "$m" >"$dir/out" 2>"$dir/err" || fail "chat: $(cat "$dir/err")"
    files >"$dir/after"
    for f in before after; do grep -v "$learned" "$dir/$f" >"$dir/$f-judged"; done
    cmp -s "$dir/before-judged" "$dir/after-judged" || fail "written in private: $(diff "$dir/before-judged" "$dir/after-judged")"
done

# A crash leaves no core: not where the limit would let it, nor by a program that the kernel hands it to (a limit of 1).
if ulimit -c unlimited 2>/dev/null; then
    unset EBB_CORE
    mkfifo "$dir/in" && { $EBB run -n 1 <"$dir/in" >"$dir/out" 2>&1 & } && pid=$! && exec 9>"$dir/in" || fail "no pipe"
    for i in $(seq 3000); do                     # until it is its own program, and has begun; a sanitizer says 0 before
        limit=$(awk '/^Max core file size/ { print $5 }' "/proc/$pid/limits")
        [ "$limit" = 1 ] && break
        sleep 0.1
    done
    exec 9>&-
    wait $pid
    [ "$limit" = 1 ] || fail "a crash may leave a core of $limit bytes"
fi
$EBB run --private -s name "x" 2>"$dir/err"; [ $? = 2 ] || fail "a session of a private chat"
grep -q "^ebb: --private keeps nothing, so it cannot name or continue a session$" "$dir/err" || fail "its message: $(cat "$dir/err")"
mkdir -p "$dir/config/ebb" && echo 'private = on' >"$dir/config/ebb/config"
XDG_CONFIG_HOME=$dir/config $EBB run -c "x" 2>"$dir/err"; [ $? = 2 ] || fail "the configuration keeps it private, and a session is continued"
grep -q '`private = on` of the configuration keeps nothing, .*; no option undoes it' "$dir/err" || fail "its message: $(cat "$dir/err")"

# A configuration that cannot be read, or whose line of it is wrong, may say so: nothing is begun, and nothing is kept.
export XDG_CONFIG_HOME="$dir/config"
config=$dir/config/ebb/config
for wrong in nul long wrong others loop; do
    rm -f "$config"
    case $wrong in
    nul) printf 'private = on\n\0' >"$config"; says="config:2: not text" ;;
    long) { echo 'private = on'; head -c 1100000 /dev/zero | tr '\0' '\n'; } >"$config"; says="config: " ;;
    wrong) printf '# mine\nprivate = onn\n' >"$config"; says="config:2: private: give on or off, not 'onn'" ;;
    others) echo 'private = on' >"$config"; chmod 666 "$config"; says="config: every user may write to it" ;;
    loop) ln -s config "$config"; says="config: cannot be opened" ;;
    esac
    for command in "run -s quokka -n 1 x" "--plain"; do
        $EBB $command </dev/null >"$dir/out" 2>"$dir/err" && fail "$command, $wrong: begun: $(cat "$dir/err")"
        [ "$(wc -l <"$dir/err")" = 1 ] && [ ! -s "$dir/out" ] || fail "$command, $wrong: $(cat "$dir/err" "$dir/out")"
        grep -q "^ebb: $dir/config/ebb/$says.*nothing is begun.*say --private" "$dir/err" || fail "$command, $wrong: $(cat "$dir/err")"
    done
    $EBB sessions >"$dir/out" 2>"$dir/err" || fail "sessions, $wrong: $(cat "$dir/err")"
    grep -q quokka "$dir/out" && fail "sessions, $wrong: kept"
    [ $wrong = wrong ] || grep -q "$says" "$dir/err" || fail "sessions, $wrong: $(cat "$dir/err")"
done
XDG_CONFIG_HOME=/dev/null $EBB run -n 1 x >"$dir/out" 2>"$dir/err" || fail "there is none: $(cat "$dir/err")"
$EBB run --private -n 1 x >"$dir/out" 2>"$dir/err" || fail "private all the same: $(cat "$dir/err")"
grep -q "^ebb: $dir/config/ebb/config: cannot be opened" "$dir/err" || fail "private all the same: $(cat "$dir/err")"
exit 0
