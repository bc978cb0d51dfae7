#!/bin/sh
# ebb pull against a hub on the loopback (support/hub.py): what is listed, fetched, resumed, refused; and what must never happen.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d) || exit 1
hub=$dir/hub repo=owner/Tiny-1B-GGUF
trap 'kill $server 2>/dev/null; rm -rf "$dir"' EXIT
export XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir/c" XDG_CACHE_HOME="$dir/k" XDG_DATA_HOME="$dir/d" HOME="$dir/home"
unset EBB_MODELS HF_TOKEN HF_HOME HF_TOKEN_PATH http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
there=$dir/d/ebb/models
guide=$PWD/models/guide.gguf
size=$(stat -c %s "$guide")
mkdir -p "$hub/files/$repo/old" "$hub/files/owner/None" "$hub/files/owner/Cut-GGUF" "$dir/home"
cp "$guide" "$hub/files/$repo/Tiny-1B-Q8_0.gguf"
cp "$guide" "$hub/files/$repo/Tiny-1B-Q4_K_M.gguf"
cp "$guide" "$hub/files/$repo/old/Tiny-1B-IQ4_XS.gguf"
cp "$guide" "$hub/files/$repo/mmproj-Tiny-1B-f16.gguf"
head -c 600000 "$guide" >"$hub/files/owner/Cut-GGUF/Cut-1B-F16.gguf"
printf '<!doctype html>' >"$hub/files/owner/Cut-GGUF/page.gguf"
: >"$hub/files/owner/Cut-GGUF/Empty-1B-Q8_0.gguf"
python3 tests/support/hub.py "$hub" &
server=$!
for i in $(seq 3000); do [ -e "$hub/port" ] && break; sleep 0.1; done
HF_ENDPOINT=http://127.0.0.1:$(cat "$hub/port")
export HF_ENDPOINT
fail() { echo "$*"; exit 1; }
how() { echo "$*" >"$hub/how"; : >"$hub/log"; }
says() {                                         # exit status, words of ebb, text
    timeout 600 "$EBB" $2 >"$dir/out" 2>"$dir/err" </dev/null
    got=$?
    cat "$dir/out" "$dir/err" >"$dir/both"
    [ $got -eq "$1" ] || fail "exit $got, not $1: ebb $2: $(cat "$dir/both")"
    grep -qF -- "$3" "$dir/both" || fail "ebb $2 says: $(cat "$dir/both")"
    if grep -q "$(printf '[\001-\010\013-\037\177]')" "$dir/both"; then fail "control characters: ebb $2"; fi
}
whole() { cmp -s "$guide" "$there/$1" || fail "$1 is not the file"; [ ! -e "$there/$1.part" ] && [ ! -e "$there/$1.part.json" ] || fail "$1.part is left"; }
gone() { ls "$there" | grep -q "$1" && fail "$(ls "$there") is left"; return 0; }
fetched() { grep -c "resolve\|blob" "$hub/log"; }
json() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$dir/out" "$1"; }

# The list: types, what suits marked, the command; nothing is fetched where nobody can be asked.
how
says 0 "pull $repo" "ebb pull $repo:"
for t in Q8_0 Q4_K_M IQ4_XS; do grep -q " $t\$" "$dir/out" || fail "no $t: $(cat "$dir/out")"; done
grep -q mmproj "$dir/out" && fail "a projector is listed"
[ "$(grep -c '^\*  ' "$dir/out")" = 1 ] || fail "which one suits: $(cat "$dir/out")"
[ "$(fetched)" = 0 ] || fail "fetched without being asked"
says 0 "pull $repo --json" '"suits":true'
[ "$(json 'len(d["models"]), d["repository"]')" = "(3, 'owner/Tiny-1B-GGUF')" ] || fail "$(cat "$dir/out")"
for form in '' relative query bare words many; do
    how "pages=$form"
    says 0 "pull $repo" "3 models"
done
how pages=other
says 1 "pull $repo" "its list of files goes on at another server, which ebb does not ask (http://localhost:"

# By type, by name, by each kind of link; what is there is not fetched again; a pipe gets the path and nothing else.
how elsewhere
says 0 "pull $repo:q8_0" "$there/Tiny-1B-Q8_0.gguf"
[ "$(cat "$dir/out")" = "$there/Tiny-1B-Q8_0.gguf" ] && [ ! -s "$dir/err" ] || fail "a pipe gets: $(cat "$dir/both")"
whole Tiny-1B-Q8_0.gguf
how
says 0 "pull $repo:Tiny-1B-Q8_0.gguf --json" '"was_there":true'
[ "$(fetched)" = 0 ] || fail "fetched again"
for word in "hf.co/$repo:Q4_K_M" "https://huggingface.co/$repo/blob/main/Tiny-1B-Q4_K_M.gguf?x=1#y" "huggingface.co/$repo/resolve/main/Tiny-1B-Q4_K_M.gguf" \
    "$repo/Tiny-1B-Q4_K_M.gguf" "$repo:tiny-1b-q4_k_m" "$HF_ENDPOINT/$repo/resolve/main/Tiny-1B-Q4_K_M.gguf"; do
    says 0 "pull $word" "$there/Tiny-1B-Q4_K_M.gguf"
    whole Tiny-1B-Q4_K_M.gguf
    rm "$there/Tiny-1B-Q4_K_M.gguf"
done
says 0 "pull $repo:IQ4_XS --json" '"verified":true'
[ "$(json 'd["bytes"], len(d["sha256"])')" = "($size, 64)" ] || fail "$(cat "$dir/out")"
whole Tiny-1B-IQ4_XS.gguf
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf Named.gguf --json" '"verified":false'
whole Named.gguf
says 0 "pull $repo -y --ram 1G" "$there/"
mkdir "$dir/mine"
EBB_MODELS=$guide:$dir/mine says 0 "pull $repo:Q8_0" "$dir/mine/Tiny-1B-Q8_0.gguf"
says 0 'run -m tiny-1b-q8_0 --greedy -n 3 hello' 'Hello'

# What is no model, or none that comes: in words, with the next step.
says 1 "pull $repo:Q4_KM" 'it has Q4_K_M, '
says 1 'pull owner/Tinny' 'there are: owner/Like-It-GGUF'
says 1 'pull owner/None' 'has no GGUF files'
says 1 "pull owner/Cut-GGUF:F16" 'download it again'
gone Cut-1B
says 1 "pull owner/Cut-GGUF:Q8_0" 'it has 0 bytes'
gone Empty
says 1 "pull $HF_ENDPOINT/owner/Cut-GGUF/page.gguf" 'is not a GGUF file but a web page'
gone page
says 1 "pull $HF_ENDPOINT/$repo/nowhere.gguf" 'not found (404'
for word in llama3 ./me/x me/ /me/x ../me/x ftp://x/y.gguf "$repo/x y" hf.co; do says 2 "pull $word" 'ebb: '; done
says 2 'pull' 'give OWNER/NAME'
says 2 "pull $repo:Q8_0 more.gguf" 'unexpected argument'
says 2 "pull $HF_ENDPOINT/x.bin" 'give a name'
says 2 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf ../evil.gguf" 'is not the name of a model file'
HF_TOKEN='a b' says 2 "pull $repo" 'does not hold a token'
HF_TOKEN_PATH=$dir says 1 "pull $repo" 'cannot be read: Is a directory'
HF_TOKEN_PATH=$dir/none says 0 "pull $repo" "ebb pull $repo:"
HF_ENDPOINT=nowhere says 2 "pull $repo" 'HF_ENDPOINT'
how api=401 gated;   says 1 "pull $repo" "accept its licence first, at $HF_ENDPOINT/$repo"
how api=404 missing; says 1 "pull $repo" 'not found (404'
how api=429;         says 1 "pull $repo" 'try again in 2 minutes, or with HF_TOKEN'
how api=500;         says 1 "pull $repo" 'answers 500'
how api=403 gated;   HF_TOKEN=secret says 1 "pull $repo" 'with the account of the token'
how api=401;         HF_TOKEN=secret says 1 "pull $repo" 'is HF_TOKEN right'
how huge;            says 1 "pull $repo" 'the most that is accepted'
how deep;            says 1 "pull $repo" 'did not send a list of files'
rm "$there/Tiny-1B-IQ4_XS.gguf"
how loop;            says 1 "pull $repo:IQ4_XS" 'redirects more than'
how loop endless;    says 1 "pull $repo:IQ4_XS" 'answers 302'
how api=404 endless; says 1 "pull $repo" 'not found (404'
how status=403 endless; says 1 "pull $repo:IQ4_XS" 'no such repository, or it is private'
how trailers;        says 1 "pull $repo" 'KiB of headers, the most that is accepted'
how api=404 slowsearch; says 1 "pull $repo" 'not found (404'
how parts=600;       says 1 "pull $repo:x" 'a model of 600 files'

# Names that could leave the folder or forge a screen are not taken, and not shown.
how hostile
says 0 "pull $repo" '14 files with names or sizes that cannot be used'
grep -qi 'evil\|eeee' "$dir/both" && fail "hostile names: $(cat "$dir/both")"
[ "$(find "$dir" -name '*evil*' | wc -l)" = 0 ] || fail "evil is there"

# The token goes to the hub and to nobody else, on no way out; nor is it told.
mkdir -p "$dir/home/.cache/huggingface"
for kind in elsewhere otherport; do
    rm -f "$there/Tiny-1B-Q8_0.gguf"
    how $kind token=hf_secret
    HF_TOKEN=hf_secret says 0 "pull $repo:Q8_0 -v --trace $dir/trace" Tiny-1B-Q8_0.gguf
    grep -q "resolve.* hf_secret\$" "$hub/log" && grep -q "api.* hf_secret\$" "$hub/log" || fail "no token: $(cat "$hub/log")"
    grep -q '/blob/.* -$' "$hub/log" || fail "not elsewhere: $(cat "$hub/log")"
    grep '/blob/' "$hub/log" | grep -q hf_secret && fail "the token went on: $(cat "$hub/log")"
    grep -q hf_secret "$dir/both" "$dir/trace" && fail "the token is told"
done
rm -f "$there/Tiny-1B-Q8_0.gguf"
printf ' hf_secret \n' >"$dir/k/token"; mkdir -p "$dir/k/huggingface"; mv "$dir/k/token" "$dir/k/huggingface/token"
how token=hf_secret
says 0 "pull $repo:Q8_0" Tiny-1B-Q8_0.gguf
rm -f "$dir/k/huggingface/token" "$there/Tiny-1B-Q8_0.gguf"
says 1 "pull $repo:Q8_0" 'licence'
how
HF_TOKEN=hf_secret says 0 "pull http://localhost:${HF_ENDPOINT##*:}/$repo/Tiny-1B-Q8_0.gguf Local.gguf" Local.gguf
grep -q hf_secret "$hub/log" && fail "the token went to another address: $(cat "$hub/log")"

# A checksum that is not right, and sizes that are not: nothing stays that looks like a model.
rm -f "$there"/*
how wronghash
says 1 "pull $repo:Q8_0" 'arrived damaged: its SHA-256 is '
gone Tiny
how wrongsize
says 1 "pull $repo:Q8_0" "should have $((size + 1)) bytes, the server has $size"
gone gguf\$
rm -f "$there"/*
how chunked wrongsize
says 1 "pull $repo:Q8_0" "should have $((size + 1)) bytes, the server has $size"
gone gguf\$
rm -f "$there"/*
how chunked
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf" Tiny
whole Tiny-1B-Q8_0.gguf
head -c 1000 "$guide" >"$there/Tiny-1B-Q4_K_M.gguf"
says 1 "pull $repo:Q4_K_M" 'ebb pull continues it'
mv "$there/Tiny-1B-Q4_K_M.gguf" "$there/Tiny-1B-Q4_K_M.gguf.part"
how
says 0 "pull $repo:Q4_K_M" Tiny
whole Tiny-1B-Q4_K_M.gguf
grep -q 'bytes=1000- -' "$hub/log" || fail "it did not go on: $(cat "$hub/log")"

# A model in parts: all of them, by type or by the address of one; the plan first, from all headers; each goes on where it stopped.
mkdir -p "$hub/files/owner/Parts-GGUF/Q8_0"
python3 tests/support/split_gguf.py "$guide" 3 "$hub/files/owner/Parts-GGUF/Q8_0/Parts-1B-Q8_0" || fail "no parts"
rm -f "$there"/*
how elsewhere
says 0 "pull owner/Parts-GGUF" "(3 files)"
says 0 "pull owner/Parts-GGUF:Q8_0 -v" "$there/Parts-1B-Q8_0-00001-of-00003.gguf"
grep -q '4 of 4 layers in memory' "$dir/err" || fail "no plan: $(cat "$dir/err")"
for i in 1 2 3; do cmp -s "$hub/files/owner/Parts-GGUF/Q8_0/Parts-1B-Q8_0-0000$i-of-00003.gguf" "$there/Parts-1B-Q8_0-0000$i-of-00003.gguf" || fail "part $i"; done
ls "$there" | grep -q part$ && fail "$(ls "$there")"
says 0 'run -m parts --greedy -n 3 hello' 'Hello'
says 0 "pull owner/Parts-GGUF:Q8_0 --json" '"was_there":true'
rm "$there/Parts-1B-Q8_0-00002-of-00003.gguf"
says 0 "pull $HF_ENDPOINT/owner/Parts-GGUF/Q8_0/Parts-1B-Q8_0-00003-of-00003.gguf --json" '"files":3'
says 0 'run -m parts --greedy -n 3 hello' 'Hello'
for word in "Parts-1B-Q8_0-00001-of-00003.gguf?filename=Parts-1B-Q8_0-00001-of-00003.gguf" "Parts%2D1B%2DQ8_0%2D00001%2Dof%2D0000%33.gguf"; do
    rm -f "$there"/*
    says 0 "pull $HF_ENDPOINT/owner/Parts-GGUF/Q8_0/$word --json" '"files":3'
    for i in 1 2 3; do cmp -s "$hub/files/owner/Parts-GGUF/Q8_0/Parts-1B-Q8_0-0000$i-of-00003.gguf" "$there/Parts-1B-Q8_0-0000$i-of-00003.gguf" || fail "part $i"; done
done

# Parts of two versions are not joined: one that is here is compared before another is fetched, and is not fetched again.
other_version() { python3 - "$hub/files/owner/Parts-GGUF/Q8_0" <<'PY'
import glob, sys
for path in glob.glob(sys.argv[1] + "/*"):
    data = bytearray(open(path, "rb").read())
    data[-1] ^= 1
    open(path, "wb").write(data)
PY
}
part=Parts-1B-Q8_0-0000
rm "$there/${part}2-of-00003.gguf"
other_version
how
says 1 "pull owner/Parts-GGUF:Q8_0" "$there/${part}1-of-00003.gguf: already there, but of another version"
[ "$(fetched)" = 0 ] || fail "fetched beside another version: $(cat "$hub/log")"
other_version
how
says 0 "pull owner/Parts-GGUF:Q8_0" "$there/${part}1-of-00003.gguf"
grep -q "resolve.*${part}[13]" "$hub/log" && fail "a whole part was fetched again: $(cat "$hub/log")"
gone '\.part'
for i in 1 2 3; do cmp -s "$hub/files/owner/Parts-GGUF/Q8_0/$part$i-of-00003.gguf" "$there/$part$i-of-00003.gguf" || fail "part $i"; done

# Broken lines: each try goes on where the last one ended.
rm -f "$there"/*
how elsewhere cut=2000000
says 0 "pull $repo:Q8_0 --json" "\"fetched_bytes\":$size"
whole Tiny-1B-Q8_0.gguf
grep -q 'bytes=2000000- -' "$hub/log" && grep -q 'bytes=4000000- -' "$hub/log" || fail "$(cat "$hub/log")"
rm -f "$there"/*
how elsewhere busy=2
says 0 "pull $repo:Q8_0" Tiny
[ "$(grep -c '/blob/' "$hub/log")" = 3 ] || fail "it was not tried again: $(cat "$hub/log")"
(ulimit -f 1000; says 1 "pull $repo:Q4_K_M" 'File too large') || exit 1
share=$(sed -n 's/^\([0-9]*\) % are here; .*/\1/p' "$dir/err")
[ "${share:-0}" -gt 0 ] || fail "how much is here: $(cat "$dir/err")"
says 0 models "$share % of it is here"
rm -f "$there"/*
how status=500
says 1 "pull $repo:Q4_K_M" 'answers 500'
HF_ENDPOINT=http://127.0.0.1:1 says 1 "pull $repo" '127.0.0.1'

# kill -9 in the middle, Ctrl-C in the middle: half of it is told, and the same command goes on; two at a time do not meet.
rm -f "$there"/*
begin() {
    ${of-} "$EBB" pull "$@" -v >"$dir/out" 2>"$dir/err" </dev/null &
    pull=$!
    while kill -0 $pull 2>/dev/null; do
        [ "$(stat -c %s "$there/Tiny-1B-Q8_0.gguf.part" 2>/dev/null || echo 0)" -gt 300000 ] && grep -q 'on this machine' "$dir/err" && return
        sleep 0.05
    done
    fail "nothing comes: $(cat "$dir/err")"
}
how elsewhere hold=1000000
begin "$repo:Q8_0"
says 1 "pull $repo:Q8_0" 'another ebb pull is fetching it'
kill -9 $pull; wait $pull 2>/dev/null
[ ! -e "$there/Tiny-1B-Q8_0.gguf" ] || fail "a name too early"
says 0 models "ebb pull $repo:Q8_0"
says 0 'models --json' '"models":[]'
begin "$repo:Q8_0"
kill -INT $pull
wait $pull; [ $? = 130 ] || fail "Ctrl-C: exit $?"
grep -q "are here; .ebb pull $repo:Q8_0. continues" "$dir/err" || fail "Ctrl-C says: $(cat "$dir/err")"
how elsewhere
says 0 "pull $repo:Q8_0 --json" '"verified":true'
[ "$(json 'd["resumed_bytes"] > 300000 and d["resumed_bytes"] + d["fetched_bytes"] == '"$size")" = True ] || fail "$(cat "$dir/out")"
whole Tiny-1B-Q8_0.gguf

# Of nohup a hang-up is none.
rm -f "$there"/*
how elsewhere hold=1000000
of=nohup begin "$repo:Q8_0"
kill -HUP $pull
how elsewhere
wait $pull || fail "nohup: exit $? after a hang-up: $(cat "$dir/err")"
whole Tiny-1B-Q8_0.gguf

# Without a checksum the ETag decides; a file that has changed is not glued to the old one.
other() { rm -f "$there"/*; how hold=1000000 "$@"; begin "$HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf"; kill -9 $pull; wait $pull 2>/dev/null; }
other etag=one
how etag=one
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'are here: continuing'
grep -q 'bytes=[0-9]*- "one"' "$hub/log" || fail "no If-Range: $(cat "$hub/log")"
whole Tiny-1B-Q8_0.gguf
other etag=one
how etag=two
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'has changed on the server: starting over'
whole Tiny-1B-Q8_0.gguf
other etag=one
how norange etag=one
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'the server cannot resume: starting over'
whole Tiny-1B-Q8_0.gguf
other etag=one weak
how etag=one weak
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'starting over'
whole Tiny-1B-Q8_0.gguf

# A server that honours Range and ignores If-Range: the date decides, and without a date nothing is joined.
other date=Monday etag=one
how noifrange date=Tuesday etag=one
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'has changed on the server: starting over'
whole Tiny-1B-Q8_0.gguf
other date=Monday etag=one
how noifrange date=Monday etag=one
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'are here: continuing'
whole Tiny-1B-Q8_0.gguf
other etag=one
how noifrange mute etag=one
says 0 "pull $HF_ENDPOINT/$repo/Tiny-1B-Q8_0.gguf -v" 'does not say whether it is still the same file: starting over'
whole Tiny-1B-Q8_0.gguf

# On a terminal it asks: Enter takes the one that suits, a type another, n none.  The line of progress has no escape sequences.
cat >"$dir/terminal.py" <<'PY'
import os, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/support")
from terminal import Terminal
asked, how, argv = sys.argv[1].split("|"), sys.argv[2], sys.argv[3:]
begin = time.monotonic()
t = Terminal(argv, os.environ)
n = 0
while t.read(0.1):
    if n < len(asked) and t.seen.count(b"which one?") > n:
        t.type(asked[n].encode() + b"\n")
        n += 1
    if b"MB/s" in t.seen:                         # seen what was to be seen: it need not stand there any longer
        open(how, "w").close()
status, frames = t.end(), t.seen.replace(b"\r", b"\n").split(b"\n")
sys.stdout.buffer.write(t.seen)
n_frames = sum(b" % " in f for f in frames)
if n_frames > 4 * (time.monotonic() - begin) + 4:
    sys.exit("%d frames in %.1f s" % (n_frames, time.monotonic() - begin))
sys.exit(status)
PY
terminal() { asked=$1; shift; python3 "$dir/terminal.py" "$asked" "$hub/how" "$@" >"$dir/out" || fail "on a terminal: exit $?: $(cat "$dir/out")"; }
rm -f "$there"/*
how hold=1000000
terminal 'Q5_K|q8_0' "$EBB" pull $repo
grep -q 'it has Q' "$dir/out" && grep -q 'SHA-256 matches' "$dir/out" && grep -q 'MB/s' "$dir/out" || fail "$(cat "$dir/out")"
grep -q "$(printf '\033')" "$dir/out" && fail "escape sequences"
whole Tiny-1B-Q8_0.gguf
rm -f "$there"/*
terminal n "$EBB" pull $repo
[ -z "$(ls "$there")" ] || fail "fetched what was not wanted"
terminal '' "$EBB" pull $repo
[ "$(ls "$there" | wc -l)" = 1 ] || fail "Enter takes none: $(cat "$dir/out")"

# What to get: one table, as the first lines of a chat and the doctor have it.
"$EBB" pull --suggest --ram 8G >"$dir/suggested" 2>"$dir/err" || fail "--suggest: $(cat "$dir/err")"
suits=$(sed -n 's/^\* suits this machine:  ebb pull //p' "$dir/suggested")
grep -q "^| .* | \`ebb pull $suits\`" README.md || fail "--suggest: $suits is not in the README"
EBB_MODELS= XDG_DATA_HOME=$dir/none "$EBB" doctor --ram 8G | grep -qF "ebb pull $suits gets" || fail "the doctor suggests something else than $suits"
"$EBB" pull --suggest --json --ram 2G | grep -q '"suits": *true' || fail "--suggest --json"
"$EBB" pull --suggest owner/name >"$dir/out" 2>&1 && fail "--suggest with a name"
exit 0
