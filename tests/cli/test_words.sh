#!/bin/sh
# Words that hands bring along: a model where a question stands, names without a path, commands of other programs.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
export XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir/c" XDG_CACHE_HOME="$dir/k" XDG_DATA_HOME="$dir/d"
unset EBB_MODELS
mkdir -p "$dir/d/ebb/models"
cp models/guide.gguf "$dir/d/ebb/models/Little-Guide-Q8_0.gguf"
cp models/guide.gguf "$dir/here.gguf"
cd "$dir" || exit 1
fail() { echo "$*"; exit 1; }
status() { want=$1; shift; "$@" >out 2>err </dev/null; got=$?; [ $got -eq "$want" ] || fail "exit $got, not $want: $* ($(cat err))"; }
says() { status "$1" "$EBB" $2; cat out err | grep -qF -- "$3" || fail "ebb $2 says: $(cat out err)"; }

# One answer: a model of its own, then a question of any number of words.
status 0 "$EBB" run -m here.gguf --greedy -n 20 -p 'how do I leave ebb'; cp out want
for line in 'run here.gguf --greedy -n 20 how do I leave ebb' 'run -n 20 --greedy how do I leave ebb' \
    'run guide --greedy -n 20 how do I leave ebb' 'run --greedy -n 20 -m little-guide-q8_0 how do I leave ebb' \
    'run --greedy -n 20 -m Little how do I leave ebb'; do
    status 0 "$EBB" $line
    cmp -s out want || fail "ebb $line: $(cat out)"
done
[ "$(tail -c 1 want)" = "" ] || fail "an answer that ends without a line end"
says 1 'run nowhere.gguf hello' 'nowhere.gguf: no such file'
says 2 'run' 'nothing to answer'

# Slips of the finger, and what other programs call it.
says 2 'rnu hello' 'rnu: no such command; did you mean `ebb run`?'
says 2 'little' 'to talk with the model of that name: ebb -m little'
says 2 'xyzzy' 'ebb --help lists them'
says 2 'xyzzy --help' 'ebb --help lists them'
says 2 'help xyzzy' 'ebb --help lists them'
status 0 "$EBB" run -m here.gguf -n 1 -p --help
grep -q -- '--linger' out && fail "a question is taken for --help"
says 2 'run --no-drafts hello' 'did you mean --no-draft?'
says 2 'run --sed=4 hello' 'did you mean --seed?'
says 2 'run --xyzzy hello' '--xyzzy: no such option; see --help'
says 2 'run -ngl 99 hello' 'ebb uses no GPU'
says 2 'run --ctx-size 4096 hello' 'it is --ctx N here'
says 2 'run -c -s talk hello' 'which of the two?'
status 2 "$EBB" run -s '' hello
grep -q 'give the name of a session' err || fail "a session without a name: $(cat err)"
"$EBB" --help | awk 'length($0) > 80 || NR > 24 { exit 1 }' || fail "ebb --help does not fit 24 rows of 80"
for command in chat run plan bench doctor sessions models pull inspect stat completion; do
    "$EBB" $command --help | awk 'length($0) > 80 { print; exit 1 }' || fail "ebb $command --help has lines of more than 80"
done

# A model for the others; what is too much is said.
says 0 'plan here.gguf' 'tier full'
says 0 'plan little' 'tier full'
says 0 'inspect gguf here.gguf' 'llama'
says 2 'plan here.gguf there' 'there: unexpected argument'
says 2 'bench -m here.gguf -p 8 -n 2 there' 'there: unexpected argument'
printf '/model\n/model guide\n/model\n/model nosuch\n/quit\n' | "$EBB" here.gguf --plain >out 2>&1 || fail "ebb FILE: $(cat out)"
[ "$(grep -c 'ebb guide Q8_0 answers from here on' out)" = 1 ] || fail "another model: $(cat out)"
grep -q 'here.gguf' out && grep -q 'built in' out && grep -q 'nosuch: no such file' out && grep -q 'MiB  Little-Guide-Q8_0.gguf' out || fail "/model: $(cat out)"

# /export without a name finds one, and says where it is.
printf 'hello\n/export\n/export\n/quit\n' | "$EBB" -m guide --plain >out 2>&1
grep -qF "written to $(pwd -P)/hello.md" out && grep -qF "$(pwd -P)/hello-2.md" out && [ -s hello.md ] && cmp -s hello.md hello-2.md ||
    fail "/export: $(cat out)"

# Numbers as hands type them: 6 bytes are not meant, -1 is "as many as there are"; a context that is too long is said.
says 2 'run guide --ram 6 hello' '--ram 6: give a size like 6G'
says 2 'chat guide --bell loud' '--bell loud: give long, always or never'
says 0 'run guide -n -1 --greedy hello' 'Hello'
says 0 'plan guide --ctx 4096' 'the model was trained for 2048 tokens'
says 1 'sessions import here.gguf' 'here.gguf: is not JSON'
says 0 'inspect gguf here.gguf' ' M parameters'

# Not here, but something like it.
for pair in 'list=ebb sessions list' 'ls=ebb models' 'ps=ebb stat' 'download=ebb pull' 'server=ebb serve' 'frob=ebb --help'; do
    says 2 "${pair%%=*}" "${pair#*=}"
done
says 2 '--plain run' 'a command comes first'
says 0 'help' 'ebb models'
says 0 'help run' '--greedy'
says 0 'help help' 'ebb models'
says 0 'help version' 'ebb models'
says 0 'version' 'ebb '
