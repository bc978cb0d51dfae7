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
cat >"$dir/try" <<'BASH'
source "$1"
complete_line() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _ebb; echo "${COMPREPLY[*]}"
}
expect() { [ "$2" = "$3" ] || { echo "$1: '$2', not '$3'"; exit 1; }; }
expect command "$(complete_line ebb ses)" sessions
expect option "$(complete_line ebb plan --ol)" --ollama
expect default "$(complete_line ebb --lin)" --linger
expect other "$(complete_line ebb plan --lin)" ""
expect value "$(complete_line ebb --mode max-t)" max-tps
expect text "$(complete_line ebb run -p x)" ""
BASH
bash "$dir/try" "$dir/bash"
