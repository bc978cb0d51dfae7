#!/bin/sh
# The completion scripts: what each of the shells that are here completes by its own.
set -eu
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
for shell in bash zsh fish; do
    "$EBB" completion $shell >"$dir/$shell"
    grep -q -- linger "$dir/$shell" || { echo "$shell: no --linger"; exit 1; }
done
"$EBB" completion tcsh 2>/dev/null && exit 1
XDG_DATA_HOME=$dir/data XDG_STATE_HOME=$dir/state; export XDG_DATA_HOME XDG_STATE_HOME EBB
mkdir -p "$dir/data/ebb/models/a" "$dir/data/ebb/models/b" && cp models/guide.gguf "$dir/data/ebb/models/tiny3-1b.gguf"
for folder in a b; do cp models/guide.gguf "$dir/data/ebb/models/$folder/twice.gguf"; done
OLLAMA_MODELS=$dir/ollama; export OLLAMA_MODELS
mkdir -p "$OLLAMA_MODELS/blobs" "$OLLAMA_MODELS/manifests/registry.ollama.ai/library/llama3.2"
for tag in 1b 3b; do
    blob=sha256-$(echo $tag | sha256sum | cut -d ' ' -f 1)
    cp models/guide.gguf "$OLLAMA_MODELS/blobs/$blob"
    printf '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "%s", "size": %s}]}' \
        "sha256:${blob#sha256-}" "$(stat -c %s models/guide.gguf)" >"$OLLAMA_MODELS/manifests/registry.ollama.ai/library/llama3.2/$tag"
done
printf '# Then: what? Why?\n\n## user\n\nA\n\n## assistant\n\nB\n' >"$dir/t.md"
"$EBB" sessions import "$dir/t.md" >/dev/null
printf '# Where to?\n\n## user\n\nA\n\n## assistant\n\nB\n' >"$dir/t.md"
"$EBB" sessions import "$dir/t.md" >/dev/null
printf '# It'"'"'s "5" $\n\n## user\n\nA\n\n## assistant\n\nB\n' >"$dir/t.md"
"$EBB" sessions import "$dir/t.md" >/dev/null
XDG_CONFIG_HOME=$dir/config; export XDG_CONFIG_HOME
"$EBB" engines add -q big-box http://127.0.0.1:1
cat >"$dir/try" <<'BASH'
source "$1"
ebb() { "$EBB" "$@"; }
# Each argument is a word as readline breaks them; one that is a colon, or follows one, has no blank before it, but where
# that is written, as in "' :'".
complete_line() {
    local word line=
    COMP_WORDS=()
    for word; do
        if [[ -n $line && $word != ' '* && $word != : && $line != *: ]]; then line+=' '; fi
        line+=$word
        COMP_WORDS+=("${word# }")
    done
    COMP_WORDBREAKS=$' \t\n"\'><=;|&(:' COMP_LINE=$line COMP_POINT=${#line}; COMP_CWORD=$(($# - 1)); COMPREPLY=(); _ebb
    echo "${COMPREPLY[*]}"
}
expect() { [ "$2" = "$3" ] || { echo "$1: '$2', not '$3'"; exit 1; }; }
expect command "$(complete_line ebb ses)" sessions
expect option "$(complete_line ebb plan --ol)" --ollama
expect default "$(complete_line ebb --ling)" --linger
expect other "$(complete_line ebb plan --lin)" ""
expect value "$(complete_line ebb --mode max-t)" max-tps
expect text "$(complete_line ebb run -p x)" ""
expect subject "$(complete_line ebb sessions rep)" replay
expect subject "$(complete_line ebb inspect temp)" template
expect guide "$(complete_line ebb chat -m guid)" guide
expect model "$(complete_line ebb -m tiny3)" tiny3-1b.gguf
expect 'two of a name' "$(complete_line ebb -m twice)" ''
expect 'two of a name' "$(ebb completion models | grep -c '^/.*/models/[ab]/twice.gguf$')" 2
expect session "$(complete_line ebb sessions show Whe)" 'Where\ to\?'
expect session "$(complete_line ebb -s Whe)" 'Where\ to\?'
expect engine "$(complete_line ebb run -e big)" big-box
expect engine "$(complete_line ebb --engine he)" here
expect engine "$(complete_line ebb engines remove big)" big-box
expect subject "$(complete_line ebb engines rem)" remove
expect 'before a colon' "$(complete_line ebb -m lla | tr ' ' '\n' | grep -c '^llama3.2:[13]b$')" 2
expect 'a colon' "$(printf '%s\n' $(complete_line ebb run -m llama3.2 :) | LC_ALL=C sort | xargs)" '1b 3b'
expect 'behind a colon' "$(complete_line ebb -m llama3.2 : 1)" 1b
expect 'a word behind it' "$(complete_line ebb -m llama3.2 : 1b --mode max-t)" max-tps
expect 'a session' "$(complete_line ebb sessions show The)" 'Then:\ what\?\ Why\?'
expect 'a session' "$(complete_line ebb sessions show Then :)" '\ what\?\ Why\?'
expect 'an option behind it' "$(complete_line ebb plan -m llama3.2 : 1b --ol)" --ollama
expect 'a blank behind it' "$(complete_line ebb run Translate : ' --js')" "$(complete_line ebb run Translate --js)"
expect 'an option' "$(complete_line ebb run Translate : ' --json-s')" --json-schema
expect 'blanks around it' "$(complete_line ebb run Say ' :' ' --js')" "$(complete_line ebb run Say --js)"
expect 'a value behind it' "$(complete_line ebb run To : ' --mode' max-t)" max-tps
expect 'a blank in it' "$(complete_line ebb -s 'Where\ t')" 'Where\ to\?'
expect 'an open quote' "$(complete_line ebb -s '"Whe')" 'Where to?'
expect 'an open quote' "$(complete_line ebb sessions show "'It")" "It'\\''s \"5\" \$"
expect 'an open quote' "$(complete_line ebb sessions show '"It')" "It's \\\"5\\\" \\\$"
expect 'files are left to bash' "$(complete_line ebb --trace gui)$(complete_line ebb --unlock gui)" ''
expect 'files are left to bash' "$(complete_line ebb -m my)" ''
expect 'a file beside a name' "$(complete_line ebb -m gui)" 'guide gui\ box/ gui.gguf'
unset COMP_WORDBREAKS
BASH

# Fish says itself what it would offer, without the descriptions.
cat >"$dir/try.fish" <<'FISH'
source $argv[1]
function ebb
    $EBB $argv
end
function expect
    set -l got (complete -C $argv[1] | string replace -r '\t.*' '' | env LC_ALL=C sort | string join ,)
    test "$got" = $argv[2]; or begin; echo "$argv[1]: '$got', not '$argv[2]'"; exit 1; end
end
expect 'ebb ses' sessions
expect 'ebb -m guide --th' --theme,--threads
expect 'ebb x.gguf --th' --theme,--threads
expect 'ebb --ram=1 ses' ''
expect 'ebb run plan --js' --json,--json-schema
expect 'X=1 ebb plan --ol' --ollama
expect 'ebb --mode max-t' max-tps
expect 'ebb gui' 'gui box/,gui.gguf'
expect 'ebb -m gui' 'gui box/,gui.gguf,guide'
expect 'ebb run --unlock gui' 'gui box/,gui.gguf'
expect 'ebb plan gui' 'gui box/,gui.gguf'
expect 'ebb inspect gguf gui' 'gui box/,gui.gguf'
expect 'ebb inspect temp' template
expect 'ebb sessions imp' import
expect 'ebb sessions import gui' 'gui box/,gui.gguf'
expect 'ebb sessions show Whe' 'Where to?'
expect 'ebb sessions delete x Whe' 'Where to?'
expect 'ebb sessions show x Whe' ''
expect 'ebb -m guide -s Whe' 'Where to?'
expect 'ebb engines remove big' big-box
expect 'ebb engines add gui' ''
expect 'ebb stat gui' ''
FISH

# What zsh is asked to offer: its own completion needs a terminal.
cat >"$dir/try.zsh" <<'ZSH'
_arguments() { print -rl -- "$@"; }
_files() { print files; }
_describe() { print -rl -- $commands; [[ ${commands[(r)${words[2]}*]} ]]; }
compadd() { print -rl -- $names; }
ebb() { "$EBB" "$@"; }
offers() {
    local want=$1 said
    shift
    words=(ebb "$@") CURRENT=$(($# + 1))
    said=$(source "$script")
    [[ $said == *$want* ]] || { print -r -- "$*: '$said', not '$want'"; exit 1; }
}
script=$1
words=(ebb x) CURRENT=2
source "$script" >/dev/null
offers 'sessions:the saved' ses
offers files gui
offers '--theme[' -m guide --th
offers '--theme[' x.gguf --th
offers '--theme[' guide --th
offers '--ollama[' plan --ol
offers '*:session:_ebb_subject' sessions show Whe
offers '*:engine:_ebb_engines' engines remove big
subject() { words=(ebb sessions "$@") CURRENT=$(($# + 2)); _ebb_subject; }
[[ $(subject show Whe) == *'Where to?'* ]] || { print "sessions show"; exit 1; }
[[ $(subject export Whe) == *'Where to?'* ]] || { print "sessions export"; exit 1; }
[[ $(subject import gui) == files && $(subject export Where gui) == files ]] || { print "files of sessions"; exit 1; }
ZSH

mkdir "$dir/w" "$dir/w/gui box" && cd "$dir/w" && : >gui.gguf
# An error of a condition is written over the line at each Tab.
fish_alone() {
    fish --no-config "$dir/try.fish" "$dir/fish" 2>"$dir/errors" && [ ! -s "$dir/errors" ] && return
    cat "$dir/errors"
    exit 1
}
absent=
if command -v bash >/dev/null; then bash -n "$dir/bash" && bash "$dir/try" "$dir/bash"; else absent="$absent bash"; fi
if command -v fish >/dev/null; then fish_alone; else absent="$absent fish"; fi
if command -v zsh >/dev/null; then zsh -f "$dir/try.zsh" "$dir/zsh"; else absent="$absent zsh"; fi
[ -z "$absent" ] || { echo "not tried, for they are not here:$absent"; exit 77; }
