#!/bin/sh
# A conversation with a remote engine on the full screen, as with one here: sent, stopped, gone on with, tried again, edited, queued, and
# moved to the engine in this process and back.
"$EBB" --help | grep -q 'ebb chat' || { echo "this build has no chat command"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
. tests/support/tmux.sh
pid=
trap 'tm kill-server 2>/dev/null; [ "$pid" ] && kill $pid 2>/dev/null; rm -rf "$dir"' EXIT
unset http_proxy HTTP_PROXY ALL_PROXY all_proxy
mkdir "$dir/server"
python3 tests/support/engine.py "$dir/server" & pid=$!
wait_until '[ -s "$dir/server/port" ]'
how() { echo "kind=llama model=big-model $*" > "$dir/server/how"; }
how
"$EBB" engines add -q box "http://127.0.0.1:$(cat "$dir/server/port")" || fail "no engine"
tm new-session -d -x 140 -y 36 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
wait_for 'shell>'
tm send-keys "$EBB -e box" Enter
wait_for 'big-model answers, from a remote engine (llama-server)'
wait_for 'engine at'; wait_for '127.0.0.1'

# Sent; its figures are the server's.
tm send-keys 'blue sky' Enter
wait_for 'You said blue sky in 1 messages.'
wait_for_re 'box . cached 3 . prompt 3'
wait_for_re 'cached \+ new'
wait_for_re 'context +[0-9]+/4,096 tok'

# Stopped in the middle, and on from there.
how slow=300 say=one_two_three_four_five_six_seven_eight
tm send-keys 'count' Enter
wait_for 'one two'
tm send-keys C-c
wait_for 'stopped'
how 'say=_and_all_the_rest'
tm send-keys Enter
wait_for 'and all the rest'

# Another answer, other words for a question, the tree.
how 'say=another_one'
tm send-keys '/retry' Enter
wait_for 'another one'
how
tm send-keys '/edit 1 red sky' Enter
wait_for 'You said red sky in 1 messages.'
tm send-keys '/go 2a' Enter
wait_for 'You said blue sky'
tm send-keys '/go 2b' Enter
wait_for 'You said red sky in 1 messages.'

# Cut, and on from the words that stay.
how 'say=_green_field'
tm send-keys '/cut -5' Enter
tm send-keys C-u
tm send-keys '/cut "sky"' Enter
wait_for 'green field'

# One that waits its turn.
how slow=200 say=first_answer_which_takes_a_while
tm send-keys 'first' Enter
wait_for 'first answer'
tm send-keys 'second' Enter
how 'say=second_came'
wait_for 'second came'

# Nothing comes: a clock, and the keys are heard.
how hold
tm send-keys 'are you there' Enter
wait_for 'waiting'
tm send-keys 'typed meanwhile'
wait_for 'typed meanwhile'
tm send-keys C-u C-c
wait_gone 'waiting'
wait_for 'are you there'
how

# What it cannot do is refused in a line that says who can.
tm send-keys '/plan' Enter
wait_for 'box cannot: the plan is the server'
tm send-keys '/engine' Enter                      # a menu of them
wait_for 'examine the current one'
wait_for 'http://127.0.0.1:'
tm send-keys Escape
wait_gone 'examine the current one'
tm send-keys C-u
tm send-keys '/engine test' Enter
wait_for 'reasoning_content'

# A server that says nothing does not hold up the keys, nor another look at it.
how hold
for words in 'typed meanwhile' 'and once more'; do
    tm send-keys '/engine test' Enter
    tm send-keys "$words"
    wait_for "$words"
    tm send-keys C-u
    wait_gone "$words"
done
how

# To the engine here, and back.
tm send-keys '/engine here' Enter
wait_for 'answers from here on'
wait_for 'layers '
tm send-keys '/set predict 3' Enter '/set temp 0' Enter
tm send-keys 'What is ebb?' Enter
wait_for_re 'length limit . 3 tok'
tm send-keys '/engine box' Enter
wait_for 'box answers: llama-server'
tm send-keys 'back again' Enter
wait_for 'You said back again'
tm send-keys "/export $dir/all.json" Enter
wait_until '[ -s "$dir/all.json" ]'
grep -q '"engine": "box"' "$dir/all.json" || fail "the export does not name the engine"

# Left and opened again: the same screen.
tm send-keys C-d
wait_for 'ebb -c continues'
tm send-keys "clear; $EBB -c -e box" Enter
wait_for 'You said back again'
tm send-keys 'still here' Enter
wait_for 'You said still here'

# The server goes away, and comes back: nothing is lost.
kill $pid; pid=
tm send-keys "lost words" Enter
wait_for 'lost words'
wait_for_re "trying again in|connect"
tm send-keys C-c
wait_gone 'waiting'
tm send-keys C-d
wait_for 'ebb -c continues'
"$EBB" sessions export 1 "$dir/kept.json"
grep -q 'lost words' "$dir/kept.json" || fail "the question is not kept"
exit 0
