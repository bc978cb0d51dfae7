#!/bin/sh
# Code that runs in the midst of parsing a model reaches nothing: a library that is loaded into the program itself tries, at the
# first read of a file.  Without the confinement it can do all of it, so the test would see a hole.
command -v cc >/dev/null || { echo "cc is not there"; exit 77; }
readelf -Ws "$EBB" 2>/dev/null | grep -q ' __asan_init\| __tsan_init' && { echo "a sanitizer wants to be loaded first"; exit 77; }
dir=$(mktemp -d) || exit 1
pids=
trap 'for p in $pids; do kill $p 2>/dev/null; done; rm -rf "$dir"' EXIT
fail() { echo "$1"; shift; [ $# -eq 0 ] || cat "$@"; exit 1; }
HOME=$dir/home; export HOME
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR EBB_MODELS EBB_NO_SANDBOX
mkdir -p "$HOME/.ssh" "$HOME/models" "$HOME/docs" "$dir/run"
echo secret >"$HOME/.ssh/id"
echo plan >"$HOME/docs/plan.txt"
cp models/guide.gguf "$HOME/models/small.gguf"

$EBB doctor >"$dir/doctor" 2>&1
grep -q 'confinement *tested, and effective: files, connections, programs' "$dir/doctor" ||
    { grep confinement "$dir/doctor" || echo "the doctor says nothing of it"; exit 77; }
EBB_NO_SANDBOX=1 $EBB doctor | grep -q 'confinement *none: EBB_NO_SANDBOX is set' || fail "the doctor does not know of EBB_NO_SANDBOX"

cat >"$dir/attack.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

static void tell(const char *what, int failed)
{
    dprintf(2, "attack: %s %s\n", what, failed ? "refused" : "DONE");
}

static void try_file(const char *what, const char *below, int flags)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s", getenv("HOME"), below);
    fd = open(path, flags, 0600);
    tell(what, fd < 0);
    close(fd);
}

static int runs(void)
{
    char *argv[] = { "/bin/true", NULL };
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        execv(argv[0], argv);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void attack(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    tell("socket", fd < 0);
    tell("connect", connect(fd, (struct sockaddr *)&at, sizeof at) != 0 ? errno != ECONNREFUSED :
         getpeername(fd, (struct sockaddr *)&at, &(socklen_t){ sizeof at }) != 0);      /* it may only say that it did */
    try_file("key", ".ssh/id", O_RDONLY);
    try_file("change", "docs/plan.txt", O_WRONLY);
    try_file("make", "evil.sh", O_WRONLY | O_CREAT);
    try_file("authorize", ".ssh/authorized_keys", O_WRONLY | O_CREAT);
    tell("run", !runs());
}

static int is_done;

/* $ATTACK: the name of the file whose reading it is that begins the attack; "recv": the first bytes of a server do. */
static const char *when(void)
{
    return getenv("ATTACK") ? getenv("ATTACK") : "small.gguf";
}

static void look(int fd)
{
    char name[64], path[4096] = "";

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (!is_done && readlink(name, path, sizeof path - 1) > 5 && strstr(path, when())) {
        is_done = 1;
        attack();
    }
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    look(fd);
    return syscall(SYS_pread64, fd, to, n, at);
}

ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t room)
{
    (void)room;
    return pread64(fd, to, n, at);
}

ssize_t read(int fd, void *to, size_t n)
{
    look(fd);
    return syscall(SYS_read, fd, to, n);
}

ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    (void)room;
    return read(fd, to, n);
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    if (!is_done && strcmp(when(), "recv") == 0) {
        is_done = 1;
        attack();
    }
    return syscall(SYS_recvfrom, fd, to, n, flags, NULL, NULL);
}

ssize_t __recv_chk(int fd, void *to, size_t n, size_t room, int flags)
{
    (void)room;
    return recv(fd, to, n, flags);
}
C
cc -shared -fPIC -O1 -o "$dir/attack.so" "$dir/attack.c" -ldl 2>"$dir/cc" || { tail -n 1 "$dir/cc"; exit 77; }

# judge WHAT FILE: all was tried, and all of it was refused
judge() {
    [ "$(grep -c '^attack: .* refused$' "$2")" = 7 ] || fail "$1: not all was refused" "$2"
    grep -q 'DONE' "$2" && fail "$1: something was done" "$2"
    no_files "$1"
}
no_files() {
    [ ! -e "$HOME/evil.sh" ] && [ ! -e "$HOME/.ssh/authorized_keys" ] || fail "$1: files were made"
}
# judge_connecting WHAT FILE: it may connect, and that is all
judge_connecting() {
    [ "$(grep -c '^attack: .* refused$' "$2")" = 5 ] || fail "$1: not all was refused" "$2"
    [ "$(grep 'DONE' "$2" | tr '\n' ' ')" = 'attack: socket DONE attack: connect DONE ' ] || fail "$1: something was done" "$2"
    no_files "$1"
}
m=$HOME/models/small.gguf
EBB_NO_SANDBOX=1 LD_PRELOAD=$dir/attack.so $EBB inspect gguf -m "$m" >/dev/null 2>"$dir/err"
[ "$(grep -c '^attack: .* DONE$' "$dir/err")" = 7 ] || fail "unconfined, the attack does not work" "$dir/err"
rm -f "$HOME/evil.sh" "$HOME/.ssh/authorized_keys"
for what in "inspect gguf" plan models "run hello" "bench -p 4 -n 2 -r 1" doctor; do
    LD_PRELOAD=$dir/attack.so EBB_MODELS=$HOME/models $EBB $what $([ "$what" = models ] || echo -m "$m") >/dev/null 2>"$dir/err"
    judge "$what" "$dir/err"
done
printf 'hello\n/quit\n' | LD_PRELOAD=$dir/attack.so $EBB --plain -m "$m" >"$dir/out" 2>"$dir/err"
judge chat "$dir/err"
: >"$dir/err"                                     # of the chat before it
LD_PRELOAD=$dir/attack.so $EBB serve -m "$m" --socket "$HOME/docs/sock" >"$dir/out" 2>"$dir/err" & pids=$!
n=600
until grep -q '^attack: run' "$dir/err"; do n=$((n - 1)); [ $n -gt 0 ] || fail "the server reads no model" "$dir/err"; sleep 0.1; done
judge serve "$dir/err"
kill $pids; wait $pids; pids=
[ ! -e "$HOME/docs/sock" ] || fail "the server leaves its socket"

# A conversation of another program is read where nothing is within reach but what is kept.
echo '{"mapping": 1}' >"$HOME/docs/foreign.json"
ATTACK=foreign.json LD_PRELOAD=$dir/attack.so $EBB sessions import "$HOME/docs/foreign.json" >/dev/null 2>"$dir/err"
judge "sessions import" "$dir/err"

says() {
    n=600
    until grep -q -- "$1" "$dir/out"; do n=$((n - 1)); [ $n -gt 0 ] || fail "never said: $1" "$dir/out"; sleep 0.1; done
}

# A server is talked to, so connections are left: to whoever is attacked there, and at the header of what was fetched.
if command -v python3 >/dev/null; then
    unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY HF_TOKEN HF_HOME HF_TOKEN_PATH
    mkdir -p "$dir/hub/files/owner/Tiny-GGUF" "$dir/engine" "$dir/new"
    cp "$m" "$dir/hub/files/owner/Tiny-GGUF/small.gguf"
    python3 tests/support/hub.py "$dir/hub" & pids=$!
    python3 tests/support/engine.py "$dir/engine" & pids="$pids $!"
    n=600
    until [ -s "$dir/hub/port" ] && [ -s "$dir/engine/port" ]; do
        n=$((n - 1)); [ $n -gt 0 ] || fail "the servers do not start"; sleep 0.1
    done
    for at in recv small.gguf; do
        ATTACK=$at LD_PRELOAD=$dir/attack.so XDG_DATA_HOME=$dir/new/$at HF_ENDPOINT=http://127.0.0.1:$(cat "$dir/hub/port") \
            $EBB pull -y owner/Tiny-GGUF:small.gguf >"$dir/out" 2>"$dir/err"
        judge_connecting "pull, at $at" "$dir/err"
        cmp -s "$m" "$dir/new/$at/ebb/models/small.gguf" || fail "what was pulled is not there" "$dir/out" "$dir/err"
    done
    # In a chat it can be loaded then, also where the folder of models is hidden and was not there yet.
    mkfifo "$dir/pulls" || exit 1
    HF_ENDPOINT=http://127.0.0.1:$(cat "$dir/hub/port") EBB_MODELS=$HOME/.new/models $EBB --plain -m "$m" <"$dir/pulls" >"$dir/out" 2>&1 & chat=$!
    exec 3>"$dir/pulls"
    echo '/pull owner/Tiny-GGUF:small.gguf' >&3; says 'small.gguf is here'
    echo '/model small.gguf' >&3; says 'answers from here on\|Error: '
    exec 3>&-; wait $chat
    grep -q 'Error: ' "$dir/out" && fail "what /pull has brought is out of reach" "$dir/out"
    ATTACK=recv LD_PRELOAD=$dir/attack.so $EBB engines test "http://127.0.0.1:$(cat "$dir/engine/port")" >"$dir/out" 2>"$dir/err"
    judge_connecting "engines test" "$dir/err"
    kill $pids; wait $pids 2>/dev/null; pids=
fi

EBB=$(realpath "$EBB")
# Links of the user's in ebb's folders lead where he means, and nothing beside what they name is within reach.
conf=$HOME/.config/ebb state=$HOME/.local/state/ebb cache=$HOME/.cache/ebb
mkdir -p "$conf/prompts" "$state" "$cache" "$HOME/sync" "$HOME/big"
chmod 700 "$HOME/big"
printf '[box]\naddress = exec:false\n' >"$HOME/.ssh/engines"
echo 'You are terse.' >"$HOME/.ssh/terse.txt"
ln -s ../../.ssh/engines "$conf/engines"
ln -s "$HOME/.ssh/terse.txt" "$conf/prompts/terse.txt"
rm -rf "$state/sessions.db"* "$state/history" "$cache/kv"
$EBB run -m "$m" -s one -n 2 -p hello >/dev/null 2>"$dir/err" || fail "no session" "$dir/err"
mv "$state/sessions.db" "$HOME/sync/"
ln -s "$HOME/sync/sessions.db" "$state/sessions.db"
rm -rf "$cache/kv"
ln -s "$HOME/big" "$cache/kv"
LD_PRELOAD=$dir/attack.so $EBB run -m "$m" -s one -n 2 -p 'And then?' >"$dir/out" 2>"$dir/err" || fail "a session behind a link" "$dir/err"
judge "run, with links" "$dir/err"
$EBB sessions show one >"$dir/out" 2>&1
grep -q 'And then?' "$dir/out" || fail "a session behind a link is not kept" "$dir/out"
rm "$HOME/sync/"*
$EBB run -m "$m" -s two -n 2 -p hello >"$dir/out" 2>"$dir/err" && [ -s "$HOME/sync/sessions.db" ] || fail "a link to a file to come" "$dir/err"
# ... nor does it matter how many links lead to it; those that lead to themselves end.
mkdir -p "$HOME/.dot/b"
ln -s b/sessions.db "$HOME/.dot/second"
ln -s "$HOME/.dot/second" "$HOME/.dot/first"
ln -s ring "$state/ring"
ln -sf "$HOME/.dot/first" "$state/sessions.db"
$EBB run -m "$m" -s three -n 2 -p hello >"$dir/out" 2>"$dir/err" && [ -s "$HOME/.dot/b/sessions.db" ] || fail "links to a link to a file to come" "$dir/err"
mkdir "$HOME/.dot/c"
ln -s v1.db "$HOME/.dot/c/current"
ln -sf "$HOME/.dot/c/current" "$state/sessions.db"
for time in first second; do
    $EBB run -m "$m" -s four -n 2 -p hello >"$dir/out" 2>"$dir/err" && [ -s "$HOME/.dot/c/v1.db" ] ||
        fail "a link to a link beside the file, the $time time" "$dir/err"
done
ln -sf "$HOME/sync/sessions.db" "$state/sessions.db"
rm "$state/ring"
[ -n "$(ls "$HOME/big")" ] || fail "K and V behind a link are not kept"
printf '/prompt terse\n' | $EBB --plain -m "$m" >"$dir/out" 2>&1
grep -q 'the system prompt is terse' "$dir/out" || fail "a prompt that is a link" "$dir/out"
$EBB run -e box -p hello >"$dir/out" 2>&1 && fail "false is no engine"
grep -q "reach" "$dir/out" && fail "a file of engines that is a link" "$dir/out"
# A model behind a link in a folder of models is one for every command, also by its name; no other file becomes one.
cp "$m" "$HOME/.ssh/real.gguf"
ln -s "$HOME/.ssh/real.gguf" "$HOME/models/linked.gguf"
ln -s "$HOME/.ssh/id" "$HOME/models/key.gguf"
for what in "plan -m linked" "inspect gguf -m linked" "run --private --ctx 256 -n 2 -p hello -m linked"; do
    ATTACK=real.gguf LD_PRELOAD=$dir/attack.so EBB_MODELS=$HOME/models $EBB $what >/dev/null 2>"$dir/err" ||
        fail "$what: a link to a model" "$dir/err"
    judge "$what" "$dir/err"
done
rm "$HOME/models/linked.gguf" "$HOME/models/key.gguf" "$HOME/.ssh/real.gguf"
# A file is kept by making others beside it: not among those of the user's.
cp "$HOME/sync/sessions.db" "$HOME/docs/"
ln -sf "$HOME/docs/sessions.db" "$state/sessions.db"
LD_PRELOAD=$dir/attack.so $EBB run -m "$m" -s one -n 2 -p 'And now?' >"$dir/out" 2>"$dir/err" && fail "a folder of the user's is written" "$dir/err"
grep -q 'sessions.db is a link to where ebb does not write; see CONFINEMENT' "$dir/err" || fail "what is told of a link" "$dir/err"
LD_PRELOAD=$dir/attack.so $EBB run -m "$m" -n 2 -p hello >"$dir/out" 2>"$dir/err"
judge "run, with a link among the user's files" "$dir/err"
rm "$state/sessions.db"

# What the user does all the same: files by name, new ones too; exports; and what is out of reach is one line.
cd "$HOME" || exit 1
mkfifo "$dir/in" || exit 1
$EBB --plain -m "$m" <"$dir/in" >"$dir/out" 2>&1 & chat=$!
exec 3>"$dir/in"
echo 'hello' >&3; says 'You: hello\|^Model: .'
echo '/export talk.json' >&3
n=600; until [ -s "$HOME/talk.json" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "no export" "$dir/out"; sleep 0.1; done
sed 's/hello/zebra/' "$HOME/talk.json" >"$HOME/late.json"        # the rules were made before
echo '/import late.json' >&3
echo '/export again.md' >&3
n=600; until [ -s "$HOME/again.md" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "no export" "$dir/out"; sleep 0.1; done
grep -q zebra "$HOME/again.md" || fail "a file that is newer than the rules was not read" "$HOME/again.md" "$dir/out"
echo '/export .ssh/talk.md' >&3; says 'no hidden'
echo '/import .ssh/id' >&3; says "out of ebb's reach; name it on the command line, start ebb in its folder"
echo '/engine http://127.0.0.1:9' >&3; says 'gave up connections'
echo '/quit' >&3; exec 3>&-; wait $chat
[ ! -e "$HOME/.ssh/talk.md" ] || fail "an export in a hidden folder"
[ "$($EBB run -m "$m" '@.ssh/id what is it?' 2>&1 | grep -c 'reach')" = 0 ] || fail "a file that is named is out of reach"
