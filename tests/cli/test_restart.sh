#!/bin/sh
# A conversation that goes on in a new process computes its new tokens only; without the cache all of them.
set -e
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
export XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME

field() { sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$dir/$1"; }
turn() { out=$1; shift; "$EBB" run -m models/guide.gguf -s talk --temp 0 -n 12 --json "$@" >"$dir/$out" </dev/null; }

turn one -p "How do I change the theme?"
turn two -p "And how do I leave?"
[ "$(field one reused_tokens)" = 0 ]
was=$(($(field one prompt_tokens) + $(field one generated_tokens)))
[ "$(field two reused_disk_tokens)" -ge $((was - 1)) ]
[ "$(field two reused_tokens)" = "$(field two reused_disk_tokens)" ]
[ $(($(field two reused_tokens) + $(field two computed_tokens))) = "$(field two prompt_tokens)" ]
[ "$(field two computed_tokens)" -le $(($(field two prompt_tokens) - was + 1)) ]
[ -z "$(find "$dir/cache/ebb/kv" -type f ! -perm 600)" ]
[ -z "$(find "$dir/cache/ebb/kv" -name '*.new')" ]

# damaged files are not trusted, and the answer is the same as without the cache
cp -r "$dir/state" "$dir/state2"
for f in "$dir"/cache/ebb/kv/*; do printf 'damaged' | dd of="$f" bs=1 seek=1000 conv=notrunc 2>/dev/null; done
turn three -p "And how do I edit a question?"
[ "$(field three reused_disk_tokens)" = 0 ]
XDG_STATE_HOME=$dir/state2
turn four --no-kv-cache -p "And how do I edit a question?"
[ "$(field four reused_tokens)" = 0 ]
for i in three four; do sed -n 's/.*\("text": *"[^"]*"\).*/\1/p' "$dir/$i" >"$dir/text-$i"; done
[ -s "$dir/text-three" ]
cmp "$dir/text-three" "$dir/text-four"

# a umask that takes all locks nobody out of what ebb makes
(umask 0777; XDG_STATE_HOME=$dir/state3 XDG_CACHE_HOME=$dir/cache3 "$EBB" run -m models/guide.gguf -s talk -n 4 -p "How do I leave?" >/dev/null </dev/null)
[ -z "$(find "$dir/state3" "$dir/cache3" -type d ! -perm 700)" ]
[ -z "$(find "$dir/state3" "$dir/cache3" -type f ! -perm 600)" ]
