#!/bin/sh
# The completion scripts: sound for their shells where these are here, and bash's completes.
set -eu
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
for shell in bash zsh fish; do
    "$EBB" completion $shell >"$dir/$shell"
    grep -q -- linger "$dir/$shell" || { echo "$shell: no --linger"; exit 1; }
    if command -v $shell >/dev/null; then $shell -n "$dir/$shell"; fi
done
"$EBB" completion tcsh 2>/dev/null && exit 1
command -v bash >/dev/null || exit 77
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
expect guide "$(complete_line ebb chat -m gui)" guide
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
unset COMP_WORDBREAKS
BASH
bash "$dir/try" "$dir/bash"
