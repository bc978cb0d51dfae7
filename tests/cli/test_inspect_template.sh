# ebb inspect template: bytes, the clock, refusals and failures.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$(dirname "$EBB")" && EBB=$PWD/$(basename "$EBB") && cd "$dir" || exit 1

fail() { echo "$1: expected [$2], got [$3]"; exit 1; }

cat > c.json <<'EOF'
{ "messages": [ { "role": "user", "content": "Ol\u00e1\n" } ], "bos_token": "<s>" }
EOF
printf '%s' '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}' > t.jinja
"$EBB" inspect template --file t.jinja --context c.json > out || exit 1
printf '<s>[user]Ol\303\241\n>' | cmp - out || exit 1
"$EBB" inspect template --file t.jinja --context c.json --no-generation-prompt > out || exit 1
printf '<s>[user]Ol\303\241\n' | cmp - out || exit 1

echo "{{ strftime_now('%d %b %Y %H:%M:%S') }}" > t.jinja
got=$(LC_ALL=C "$EBB" inspect template --file t.jinja --context c.json --now 2025-03-07T09:05:03)
[ "$got" = "07 Mar 2025 09:05:03" ] || fail "the clock" "07 Mar 2025 09:05:03" "$got"
"$EBB" inspect template --file t.jinja --context c.json --now yesterday 2>/dev/null
[ $? -eq 2 ] || fail "--now yesterday" 2 $?

echo "before{{ raise_exception('No turns, no text: ' + 'x' * 300) }}" > t.jinja
got=$("$EBB" inspect template --file t.jinja --context c.json 2>&1)
[ $? -eq 1 ] || fail "status of a refusal" 1 $?
case $got in
*before*) fail "a refusal" "no text" "$got" ;;
*"No turns, no text: xxxxx"*xxxx) [ ${#got} -gt 300 ] || fail "a long refusal" "whole" "$got" ;;
*) fail "a refusal" "its words" "$got" ;;
esac

printf '\n\n{{ nothing.at.all }}' > t.jinja
got=$("$EBB" inspect template --file t.jinja --context c.json 2>&1)
[ $? -eq 1 ] || fail "status of a failure" 1 $?
case $got in *"line 3"*"'nothing' is undefined"*) ;; *) fail "a failure" "line and reason" "$got" ;; esac
"$EBB" inspect template --file t.jinja 2>/dev/null
[ $? -eq 2 ] || fail "no --context" 2 $?
"$EBB" inspect template -m guide >out 2>err || fail "which template" 0 $?
grep -q '^chat template: ' err && grep -q '{' out || fail "which template, and its text" "both" "$(cat err out)"
"$EBB" inspect template -m guide --template chatml 2>&1 | grep -q 'chatml, as you asked' || fail "--template" chatml "another"
# The one that is named is rendered, too, on the command line or in the configuration; --file is nearer than that.
"$EBB" inspect template -m guide --template none --context c.json >out && printf 'Ol\303\241\n' | cmp - out || fail "none with --context" "its text" "$(cat out)"
"$EBB" inspect template -m guide --template llama3 --context c.json | grep -q 'start_header_id' || fail "llama3 with --context" "its text" "another"
"$EBB" inspect template -m guide --template nosuch --context c.json >out 2>err; [ $? -eq 1 ] || fail "nosuch with --context" 1 0
grep -q "no chat template 'nosuch'" err && [ ! -s out ] || fail "nosuch with --context" "its name" "$(cat err out)"
mkdir ebb && echo 'template = none' >ebb/config && echo '[{{ messages[0].content }}]' >t.jinja
XDG_CONFIG_HOME=$dir "$EBB" inspect template -m guide --context c.json >out && printf 'Ol\303\241\n' | cmp - out || fail "of the configuration" "its text" "$(cat out)"
XDG_CONFIG_HOME=$dir "$EBB" inspect template --file t.jinja --context c.json | grep -q '^\[Ol' || fail "--file" "its text" "another"
"$EBB" inspect template -m guide --template auto --context c.json >out && "$EBB" inspect template -m guide --context c.json | cmp - out || fail "auto" "the model's own" "$(cat out)"
rm -r ebb
"$EBB" run -m guide --raw -n 2 --greedy 'Once upon' >/dev/null 2>err </dev/null || fail "--raw" 0 "$(cat err)"
"$EBB" run -m guide --template nosuch -n 2 'Once upon' >/dev/null 2>err </dev/null && fail "--template nosuch" 1 0
grep -q "no chat template 'nosuch'" err || fail "--template nosuch" "its name" "$(cat err)"
# In the chat it is a setting of the session: kept, by its full path if it is a file, and taken again.
XDG_STATE_HOME=$dir/s XDG_CONFIG_HOME=$dir XDG_CACHE_HOME=$dir/k LC_ALL=C.UTF-8
export XDG_STATE_HOME XDG_CONFIG_HOME XDG_CACHE_HOME LC_ALL
talk() { "$EBB" chat -m guide -n 4 --greedy --plain "$@" 2>&1; }
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' > own.jinja
printf 'Hi\n/set template ./own.jinja\nHi\n' | talk >out || fail "a chat" 0 "$(cat out)"
grep -q '^Note: chat template: .*own.jinja' out || fail "/set template FILE" "a note" "$(cat out)"
printf '/set template\n/set template nosuch\n/set template auto\n/set template\n' | talk -c >out
grep -q "^template = .*/own.jinja (auto" out || fail "it is kept" "its path" "$(cat out)"
grep -q "^Error: there is no chat template 'nosuch'" out || fail "/set template nosuch" "an error" "$(cat out)"
grep -q "^template = auto (auto" out || fail "/set template auto" auto "$(cat out)"
cp own.jinja "$(printf 'caf\351.jinja')"
printf '/set template ./caf\351.jinja\n/set template\n' | talk >out
grep -q '^Error: .*this path is no UTF-8' out && grep -q '^template = auto' out || fail "a path in Latin-1" "an error" "$(cat out)"
printf 'Hi\n/set template ./own.jinja\n' | talk -s away >/dev/null
rm own.jinja
printf '/load away\nHi\n' | talk >out
grep -q "^Note: the chat template of this session: .*; the default is used" out && [ "$(grep -c '^Model: ' out)" -ge 2 ] ||
    fail "a file that is gone" "a note and an answer" "$(cat out)"
printf '/set template\nHi\n/set template chatml\n/set template\n' | talk -s away >out
grep -q "^Note: the chat template of this session: .*; the default is used" out && grep -q '^Model: ' out &&
    grep -q "^template = auto" out && grep -q "^template = chatml" out ||
    fail "a session whose file is gone" "a note, an answer and another template" "$(cat out)"

"$EBB" inspect template --file none.jinja --context c.json 2>/dev/null
[ $? -eq 1 ] || fail "no such file" 1 $?
exit 0
