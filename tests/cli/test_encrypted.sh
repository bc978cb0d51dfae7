# ebb sessions encrypt, decrypt, rekey: nothing that was said can be read on the disk, and nothing of it is lost.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
HOME=$dir/home; export HOME
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR EBB_MODELS EBB_UNLOCK
mkdir "$HOME"
state=$HOME/.local/state/ebb
key=$dir/key
$EBB sessions encrypt --unlock "$dir/probe" >"$dir/out" 2>&1 || { grep -q libsodium "$dir/out" && exit 77; fail "encrypt nothing: $(cat "$dir/out")"; }
$EBB sessions decrypt --unlock "$dir/probe" >/dev/null || fail "decrypt nothing"

question="zanzibar quokka fjord: how do I leave this program again, and what are its keys?"
words="xylophon kumquat zanzibar quokka marmalade draughty"
readable() {
    for word in $words; do
        found=$(grep -rlai "$word" "$HOME") && { echo "$word in $found"; return; }
    done
}

i=0
while [ $i -lt 50 ]; do
    printf '{"messages": [{"role": "user", "content": "Sentence %d of the xylophon affair"},{"role": "assistant", "content": "Reply %d about kumquats"}]}\n' $i $i >"$dir/$i.json"
    $EBB sessions import "$dir/$i.json" "planted-marmalade-$i" >/dev/null || fail "import $i"
    i=$((i + 1))
done
printf 'What about the draughty line?\nAnd a \\\\ second\\nline of the xylophon?\n' >"$state/history"
printf '\nan unsent marmalade' >"$state/draft"
echo "copied kumquat" | tee "$state/copy.txt" >"$state/copy.txt.0123456789abcdef.new"      # of one that was killed
mkdir -m 700 "$state/run"                                  # what an editor had with --private, of one that was killed
echo "lent kumquat" >"$state/run/ebb-draft-abcdef.md"
: >"$state/run/.ebb-draft-abcdef.md.lock"
echo "saved later" >"$state/run/ebb-draft-later1.md"
$EBB run -s asked "$question" >"$dir/answer" 2>"$dir/err" || fail "run: $(cat "$dir/err")"
ls "$HOME"/.cache/ebb/kv/*.block >/dev/null 2>&1 || fail "no K and V in the clear"
[ -n "$(readable)" ] || fail "the test does not see what is in the clear"

$EBB sessions list >/dev/null && python3 -c "import sqlite3,sys; sqlite3.connect(sys.argv[1]).execute('create table x(y)')" "$dir/clear.db"
# -- encrypt: K and V and the database that were in the clear are overwritten --
set -- "$HOME"/.cache/ebb/kv/*.block
exec 7<"$1" 8<"$state/sessions.db"
$EBB sessions encrypt --unlock "$key" >"$dir/out" 2>&1 || fail "encrypt: $(cat "$dir/out")"
[ "$(wc -l <"$dir/out")" = 2 ] && grep -q "keep a copy" "$dir/out" || fail "encrypt says: $(cat "$dir/out")"
grep -q 'run/ebb-draft-later1.md: an editor has left it' "$dir/out" && rm "$state/run/ebb-draft-later1.md" || fail "what stays in the clear: $(cat "$dir/out")"
[ "$(stat -c %a "$key" "$state/sessions.key" "$state/sessions.db" "$state/history" | sort -u)" = 600 ] || fail "modes: $(ls -l "$key" "$state")"
[ -z "$(readable)" ] || fail "encrypted: $(readable)"
[ ! -e "$state/copy.txt" ] || fail "what was copied last is there"
[ "$(ls "$HOME/.cache/ebb/kv")" = key ] || fail "K and V in the clear stay"
[ "$(cat <&7 | tr -d '\0' | wc -c)" = 0 ] || fail "K and V in the clear are only removed"
[ "$(cat <&8 | tr -d '\0' | wc -c)" = 0 ] || fail "the database in the clear is only removed"
exec 7<&- 8<&-
EBB_UNLOCK=$key; export EBB_UNLOCK
$EBB sessions list | grep -c planted | grep -qx 50 || fail "list"
$EBB sessions search "xylophon affair" | grep -c xylophon | grep -qx 50 || fail "search"
$EBB sessions show asked | grep -q quokka || fail "show"
$EBB sessions export asked "$dir/asked.md" && grep -q quokka "$dir/asked.md" || fail "export"
$EBB doctor 2>/dev/null | grep -q 'sessions.*encrypted.*key file' || fail "doctor says: $($EBB doctor 2>&1 | grep sessions)"

# -- go on, with K and V; a chat that is killed; unsent text --
$EBB run -s asked --greedy -n 20 "and where is the quokka now?" >"$dir/out" 2>"$dir/err" || fail "run: $(cat "$dir/err")"
ls "$HOME"/.cache/ebb/kv/*.block >/dev/null 2>&1 || fail "no encrypted K and V"
$EBB run -s asked -n 5 "$question" >/dev/null 2>&1 || fail "run again"
$EBB run -s asked --json -n 5 "$question" >"$dir/out" 2>&1 || fail "run: $(cat "$dir/out")"
grep -q '"reused_disk_tokens":[1-9]' "$dir/out" || fail "encrypted K and V are not reused: $(cat "$dir/out")"
printf 'Where is the xylophon of the program?\n/quit\n' | $EBB --plain >"$dir/out" 2>&1 || fail "chat: $(cat "$dir/out")"
[ -z "$(readable)" ] || fail "after a chat: $(readable)"
(echo "Tell me of kumquats and the keys"; sleep 5) | $EBB --plain >"$dir/out" 2>&1 &
pid=$!
i=0; while [ ! -s "$dir/out" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done
child=$(pgrep -P $pid -f -- --plain); kill -9 ${child:-$pid} 2>/dev/null; wait $pid 2>/dev/null
[ -z "$(readable)" ] || fail "after kill -9: $(readable)"
$EBB sessions list >/dev/null || fail "list after kill -9"
[ "$(grep -vc '^~sealed1~' "$state/history")" = 0 ] || fail "lines of the history in the clear"

# -- who has no key, or another one --
one_line() { [ "$(wc -l <"$dir/err")" = 1 ] || fail "$1: $(cat "$dir/err")"; }
echo "this is quite another key file" >"$dir/other"; chmod 600 "$dir/other"
for c in "sessions list" "run -s asked x" "--plain" "sessions decrypt" "sessions rekey $dir/new"; do
    $EBB $c --unlock "$dir/other" </dev/null >"$dir/out" 2>"$dir/err"; [ $? = 1 ] || fail "$c with a wrong key: $(cat "$dir/err")"
    one_line "$c with a wrong key"; grep -q "not the key file" "$dir/err" || fail "$c: $(cat "$dir/err")"
    EBB_UNLOCK='' $EBB $c </dev/null >"$dir/out" 2>"$dir/err"; [ $? = 2 ] || fail "$c without a key: $(cat "$dir/err")"
    one_line "$c without a key"; grep -q -- "--unlock" "$dir/err" || fail "$c: $(cat "$dir/err")"
done
chmod 644 "$dir/other"; $EBB sessions list --unlock "$dir/other" 2>"$dir/err"; [ $? = 2 ] || fail "a key that others may read"
mv "$state/sessions.key" "$dir/kept"
$EBB sessions list 2>"$dir/err" && fail "list without the wrapped key"; one_line "no wrapped key"
$EBB sessions encrypt >"$dir/out" 2>"$dir/err" && fail "a new key over what is encrypted with a lost one"
[ ! -e "$state/sessions.key" ] || fail "a new key was made"
mv "$dir/kept" "$state/sessions.key"

# -- the database's first byte is damaged, or one in the clear is in its place: the rest stays encrypted, the key stays --
cp "$state/sessions.db" "$dir/sealed.db"; cp "$state/sessions.key" "$dir/kept"
printf E | dd of="$state/sessions.db" bs=1 conv=notrunc 2>/dev/null
cp "$state/sessions.db" "$dir/damaged.db"
for is in damaged clear; do
    [ $is = damaged ] || cp "$dir/clear.db" "$state/sessions.db"
    rm -rf "$HOME/.cache/ebb/kv"
    $EBB sessions list </dev/null >"$dir/out" 2>"$dir/err" && fail "list, $is"
    one_line "list, $is"; grep -q "sessions.db is" "$dir/err" || fail "list, $is: $(cat "$dir/err")"
    printf 'Is the xylophon %s?\n/quit\n' $is | $EBB --plain >"$dir/out" 2>&1 || fail "chat, $is: $(cat "$dir/out")"
    grep -q "kept in memory only" "$dir/out" || fail "chat, $is: $(cat "$dir/out")"
    [ -z "$(readable)" ] || fail "in the clear, $is: $(readable)"
    $EBB sessions encrypt --unlock "$dir/other2" </dev/null >"$dir/out" 2>"$dir/err" && fail "a new key, $is"
    one_line "encrypt, $is"
    cmp "$state/sessions.key" "$dir/kept" || fail "another key takes the place of the one that is needed, $is"
    if [ $is = damaged ]; then $EBB sessions decrypt >"$dir/out" 2>"$dir/err" && fail "decrypt, $is"; fi
    cmp "$state/sessions.key" "$dir/kept" || fail "the key is removed, $is"
    cmp "$state/sessions.db" "$dir/$is.db" || fail "sessions.db is another one, $is"
done
$EBB sessions encrypt >/dev/null 2>"$dir/err" || fail "encrypting what is in the clear, with the key that is there: $(cat "$dir/err")"
cmp "$state/sessions.key" "$dir/kept" || fail "another key than the one that is there"
cp "$dir/sealed.db" "$state/sessions.db"
$EBB sessions list | grep -c planted | grep -qx 50 || fail "list with the database put back"

# -- what needs no session asks for none, and keeps nothing in the clear --
before=$(ls "$HOME/.cache/ebb/kv" | wc -l)
EBB_UNLOCK='' $EBB run "one xylophon alone" >"$dir/out" 2>"$dir/err" || fail "run without a session: $(cat "$dir/err")"
EBB_UNLOCK='' $EBB run --private "one marmalade alone" >"$dir/out" 2>"$dir/err" || fail "run --private: $(cat "$dir/err")"
EBB_UNLOCK='' $EBB bench -m guide -p 64 -n 1 -r 1 >/dev/null 2>&1 || fail "bench"
[ "$before" = "$(ls "$HOME/.cache/ebb/kv" | wc -l)" ] || fail "K and V were written without a key"
[ -z "$(readable)" ] || fail "without a key: $(readable)"
[ -z "$(EBB_UNLOCK='' $EBB completion sessions)" ] || fail "completion names encrypted sessions"

# -- while another one runs, nothing is turned --
mkfifo "$dir/keys" || exit 1
: >"$dir/out"                                     # or what stands there would be taken for its first words
$EBB --plain <"$dir/keys" >"$dir/out" 2>&1 &
pid=$!
exec 9>"$dir/keys"
echo /help >&9                                   # what it says then, it says with the store open
i=0; while [ ! -s "$dir/out" ] && [ $i -lt 3000 ]; do sleep 0.1; i=$((i + 1)); done
$EBB sessions decrypt >"$dir/out2" 2>"$dir/err" && fail "decrypted under a chat, which says: $(cat "$dir/out")"
one_line "busy"; grep -q "leave it first" "$dir/err" || fail "busy: $(cat "$dir/err")"
echo /quit >&9; exec 9>&-
wait $pid

# -- delete and purge in what is encrypted; another key; no longer encrypted --
$EBB sessions delete planted-marmalade-0 && $EBB sessions purge >/dev/null || fail "delete, purge"
[ "$($EBB sessions list | grep -c planted)" = 49 ] || fail "after a deletion"
begun=$state/sessions.key.0123456789abcdef.new      # of one that was killed
echo begun >"$begun"
exec 3<"$begun" 4<"$state/sessions.key"             # these stand for their blocks on the disk
$EBB sessions rekey "$dir/new" >/dev/null || fail "rekey"
[ ! -e "$begun" ] || fail "a key that was begun stays"
[ -z "$(tr -d '\0' <&3)$(tr -d '\0' <&4)" ] || fail "the old key, or one that was begun, is not overwritten"
exec 3<&- 4<&-
$EBB sessions list >/dev/null 2>&1 && fail "the old key opens it still"
EBB_UNLOCK=$dir/new
[ "$($EBB sessions list | grep -c planted)" = 49 ] || fail "the new key does not"
echo begun >"$begun"
$EBB sessions decrypt >"$dir/out" 2>&1 || fail "decrypt: $(cat "$dir/out")"
unset EBB_UNLOCK
[ ! -e "$state/sessions.key" ] && [ ! -e "$begun" ] || fail "the wrapped key stays"
[ "$($EBB sessions search "xylophon affair" | grep -c xylophon)" -ge 49 ] || fail "search in the clear"
$EBB sessions show asked | grep -q "quokka now" || fail "what was said meanwhile is gone"
printf 'What about the draughty line?\nAnd a \\\\ second\\nline of the xylophon?\n' >"$state/history"
printf '\nan unsent marmalade' >"$state/draft"
cp "$state/history" "$state/draft" "$dir"
$EBB sessions encrypt --unlock "$key" >/dev/null && [ -z "$(readable)" ] || fail "encrypted again: $(readable)"
$EBB sessions decrypt --unlock "$key" >/dev/null || fail "decrypted again"
cmp "$state/history" "$dir/history" && cmp "$state/draft" "$dir/draft" || fail "history and draft are not what they were"

# -- what is ended half way, here by a draft that is too long, is said by the database, which is the last to be encrypted
#    and the first that no longer is --
for turn in encrypt decrypt; do
    truncate -s 129M "$state/draft-1"
    $EBB sessions $turn --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "$turn with a draft that cannot be read"
    one_line "$turn, half"; grep -q "draft-1" "$dir/err" || fail "$turn, half: $(cat "$dir/err")"
    $EBB sessions list --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "$turn, half: list"
    one_line "$turn, half: list"; grep -q "ends what was begun" "$dir/err" || fail "$turn, half: $(cat "$dir/err")"
    $EBB doctor 2>/dev/null | grep -q 'sessions.*in the clear, but a key' || fail "$turn, half: doctor"
    rm "$state/draft-1"
    $EBB sessions $turn --unlock "$key" >/dev/null 2>"$dir/err" || fail "$turn, the other half: $(cat "$dir/err")"
done
cmp "$state/history" "$dir/history" && cmp "$state/draft" "$dir/draft" || fail "history and draft are not what they were"

# -- the key stays as long as what it opens is somewhere else: behind a link to a disk that is gone for now, or moved
#    away; and a key behind such a link is not replaced --
$EBB sessions encrypt --unlock "$key" >/dev/null || fail "encrypt before it is moved"
stays() {
    cmp "$dir/kept" "$state/sessions.key" || fail "$1: the key is another one"
    cmp "$dir/history.sealed" "$state/history" || fail "$1: the history is turned"
}
cp "$state/sessions.key" "$dir/kept"; cp "$state/history" "$dir/history.sealed"
mkdir "$dir/disk"; mv "$state/sessions.db" "$dir/disk/"
for is in link gone empty; do
    rm -f "$state/sessions.db"
    case $is in
    link) ln -s "$dir/nodisk/sessions.db" "$state/sessions.db"; says="leads nowhere" ;;
    gone) says="put it back" ;;
    empty) : >"$state/sessions.db"; says="put it back" ;;
    esac
    if [ $is = gone ]; then                      # nobody begins another one, for which the key would go
        $EBB sessions list --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "list, $is: $(cat "$dir/out")"
        one_line "list, $is"; [ ! -e "$state/sessions.db" ] || fail "list, $is: another database"
    fi
    $EBB sessions decrypt --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "decrypt, $is: $(cat "$dir/out")"
    one_line "decrypt, $is"; grep -q "sessions.db.*$says" "$dir/err" || fail "decrypt, $is: $(cat "$dir/err")"
    stays "decrypt, $is"
done
rm -f "$state/sessions.db"; ln -s "$dir/nodisk/sessions.db" "$state/sessions.db"
$EBB sessions encrypt --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "encrypt behind a link: $(cat "$dir/out")"
one_line "encrypt behind a link"; stays "encrypt behind a link"
[ -L "$state/sessions.db" ] || fail "the link is no link any more"
rm "$state/sessions.db"; ln -s "$dir/disk/sessions.db" "$state/sessions.db"
rm "$state/sessions.key"; ln -s "$dir/nodisk/sessions.key" "$state/sessions.key"
$EBB sessions encrypt --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "encrypt with a key that is gone"
one_line "a key that is gone"; grep -q "sessions.key back" "$dir/err" || fail "a key that is gone: $(cat "$dir/err")"
rm "$state/sessions.key"; cp "$dir/kept" "$state/sessions.key"

# -- a key behind a link: another one takes the place of what it leads to, and none stays there --
mkdir "$dir/stick"; mv "$state/sessions.key" "$dir/stick/"; ln -s "$dir/stick/sessions.key" "$state/sessions.key"
exec 3<"$dir/stick/sessions.key"
cp "$key" "$begun"; cp "$key" "$dir/stick/${begun##*/}"       # of older ebbs that were killed, and of this one
$EBB sessions rekey "$dir/new" --unlock "$key" >"$dir/out" 2>&1 || fail "rekey behind a link: $(cat "$dir/out")"
[ ! -e "$begun" ] && [ ! -e "$dir/stick/${begun##*/}" ] || fail "a key that was begun stays, behind a link"
[ -L "$state/sessions.key" ] || fail "the link to the key is no link any more"
[ -z "$(tr -d '\0' <&3)" ] || fail "the old key stays behind a link"
exec 3<&-
$EBB sessions list --unlock "$key" >/dev/null 2>&1 && fail "the old key opens it still, behind a link"
cp "$key" "$begun"
$EBB sessions decrypt --unlock "$dir/new" >"$dir/out" 2>&1 || fail "decrypt, the key behind a link: $(cat "$dir/out")"
[ ! -e "$begun" ] || fail "a key that was begun stays in the clear, beside a link"
[ ! -L "$state/sessions.key" ] && [ ! -e "$dir/stick/sessions.key" ] || fail "the key stays behind a link"
$EBB sessions encrypt --unlock "$key" >/dev/null || fail "encrypt again"

# -- what would stop it half way is looked at before a key is made --
mv "$state/history" "$dir/history.moved"; ln -s "$dir/nodisk/history" "$state/history"
$EBB sessions decrypt --unlock "$key" >"$dir/out" 2>"$dir/err" && fail "a history that is gone: $(cat "$dir/out")"
one_line "a history that is gone"
$EBB sessions list --unlock "$key" >"$dir/out" 2>"$dir/err" || fail "a history that is gone: $(cat "$dir/err")"
rm "$state/history"; mv "$dir/history.moved" "$state/history"

# -- a key that cannot be removed, as containers mount them: it is said, and is no encryption --
if unshare -m true 2>/dev/null; then
    unshare -m sh -c 'mount --bind "$1" "$1" && exec "$2" sessions decrypt --unlock "$3"' sh "$state/sessions.key" \
        "$EBB" "$key" >"$dir/out" 2>"$dir/err" && fail "the key stays, and not a word of it: $(cat "$dir/out")"
    one_line "a key that stays"; grep -q "sessions.key cannot be removed" "$dir/err" || fail "stays: $(cat "$dir/err")"
fi
$EBB sessions decrypt --unlock "$key" >/dev/null || fail "decrypt behind a link"
[ ! -e "$state/sessions.key" ] && [ -L "$state/sessions.db" ] || fail "decrypt behind a link: what is there"
rm "$state/sessions.db"; mv "$dir/disk/sessions.db" "$state/"
cmp "$state/history" "$dir/history" || fail "the history is not what it was"

# -- while one waits for a passphrase, no other one makes a key that it would replace --
cat >"$dir/wait.py" <<'X'
import os, pty, subprocess, sys
ebb, key = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(ebb, [ebb, "sessions", "encrypt"])
shown = b""
while b"passphrase for the sessions: " not in shown:
    shown += os.read(fd, 4096)
other = subprocess.run([ebb, "sessions", "encrypt", "--unlock", key], stderr=subprocess.PIPE)
os.write(fd, b"\n")                              # an empty passphrase: it encrypts nothing
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.write(other.stderr.decode())
sys.exit(other.returncode)
X
/usr/bin/python3 "$dir/wait.py" "$EBB" "$key" >"$dir/err"; [ $? = 1 ] || fail "two encrypt at once: $(cat "$dir/err")"
one_line "two encrypt at once"; [ ! -e "$state/sessions.key" ] || fail "two encrypt at once: a key was made"

# -- a passphrase, on a terminal, without echo --
cat >"$dir/type.py" <<'X'
import os, pty, select, signal, sys
words, argv = sys.argv[1].split(","), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)
shown, asked = b"", 0
while select.select([fd], [], [], 120)[0]:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    shown += data
    while asked < len(words) and shown.count(b": ") > asked:
        os.write(fd, words[asked].encode() + b"\n")
        asked += 1
else:
    os.kill(pid, signal.SIGKILL)
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
X
cat >"$dir/quit.py" <<'X'
import fcntl, os, pty, signal, sys, termios
fd, held = pty.openpty()                         # held: or its settings would go with its last process
leader = os.fork()                               # the shell: a group that nobody of its session waits for is not stopped
if leader:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1]))
os.setsid()
fcntl.ioctl(held, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(held, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], [sys.argv[1], "sessions", "list"])

def wait_for_prompt():
    while b": " not in os.read(fd, 4096):
        pass

def ends_by(number):
    ended = os.waitpid(pid, os.WUNTRACED)[1]
    is_it = os.WIFSTOPPED(ended) and os.WSTOPSIG(ended) == number or os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == number
    if not is_it or not termios.tcgetattr(held)[3] & termios.ECHO:
        sys.exit("signal %d at the prompt: status %#x" % (number, ended))

wait_for_prompt()
if sys.argv[2] == "stop":
    os.kill(pid, signal.SIGTSTP)
    ends_by(signal.SIGTSTP)
    os.kill(pid, signal.SIGCONT)
    wait_for_prompt()                            # without echo again
    os.kill(pid, signal.SIGUSR1)
    ends_by(signal.SIGUSR1)
else:
    os.write(fd, b"\x1c")
    ends_by(signal.SIGQUIT)
X
typed() { words=$1; shift; /usr/bin/python3 "$dir/type.py" "$words" "$EBB" "$@" >"$dir/out" 2>&1; }
typed opensesame,opensesamy sessions encrypt && fail "the two passphrases differ"
typed opensesame,opensesame sessions encrypt || fail "with a passphrase: $(cat "$dir/out")"
grep -q opensesame "$dir/out" && fail "the passphrase is shown: $(cat "$dir/out")"
[ -z "$(readable)" ] || fail "with a passphrase: $(readable)"
/usr/bin/python3 "$dir/quit.py" "$EBB" key || fail "Ctrl-\\ at the prompt leaves the terminal without echo"
/usr/bin/python3 "$dir/quit.py" "$EBB" stop || fail "a stop at the prompt leaves the terminal without echo"
typed opensesame sessions list || fail "list with a passphrase: $(cat "$dir/out")"
[ "$(grep -c planted "$dir/out")" = 49 ] || fail "list with a passphrase: $(cat "$dir/out")"
typed opensesamy,opensesame sessions list || fail "a slip in the passphrase: $(cat "$dir/out")"
grep -q "wrong passphrase for the encrypted sessions; once more: " "$dir/out" || fail "a slip: $(cat "$dir/out")"
[ "$(grep -c planted "$dir/out")" = 49 ] || fail "list behind a slip: $(cat "$dir/out")"
typed opensesamy,opensesamz,sesame sessions list; [ $? = 1 ] || fail "list with a wrong passphrase"
grep -q "^ebb: wrong passphrase" "$dir/out" || fail "three wrong passphrases: $(cat "$dir/out")"
(umask 077; echo opensesamy >"$dir/word")
typed opensesame sessions list --unlock "$dir/word"; [ $? = 1 ] || fail "a wrong passphrase in a file"
grep -q "once more" "$dir/out" && fail "a wrong passphrase in a file: $(cat "$dir/out")"
(umask 077; echo opensesame >"$dir/word")
[ "$($EBB sessions list --unlock "$dir/word" | grep -c planted)" = 49 ] || fail "the passphrase in a file"
(umask 077; mkdir -p "$HOME/.config/ebb"; echo "unlock = $dir/word" >"$HOME/.config/ebb/config")
[ "$($EBB sessions list | grep -c planted)" = 49 ] || fail "the file in the configuration"
rm "$HOME/.config/ebb/config"
typed opensesame,aladdin,aladdin sessions rekey || fail "another passphrase: $(cat "$dir/out")"
typed aladdin sessions decrypt || fail "decrypt with a passphrase: $(cat "$dir/out")"
[ "$($EBB sessions list | grep -c planted)" = 49 ] || fail "no longer encrypted"
ls "$state" | grep -q '\.new' && fail "something is left over: $(ls "$state")"
exit 0
