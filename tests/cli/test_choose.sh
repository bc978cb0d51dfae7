#!/bin/sh
# Without -m: the one that was named last, else the best, and a line that says so; ebb plan lists all.
set -e
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
export XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir" XDG_CACHE_HOME="$dir" XDG_DATA_HOME="$dir" EBB_MODELS="$dir/m"
mkdir "$dir/m"
says() { printf '/quit\n' | "$EBB" chat --plain "$@" >"$dir/out" 2>&1; }
has() { grep -qF -- "$1" "$dir/out" || { echo "lacks: $1"; cat "$dir/out"; exit 1; }; }
lacks() { ! grep -qF -- "$1" "$dir/out" || { echo "has: $1"; cat "$dir/out"; exit 1; }; }

says; lacks took                                 # the guide, as there is nothing else
printf 'GGUF' >"$dir/m/broken.gguf"              # it is there, and a script is told why it does not answer
says; has 'took the built-in guide: '; has 'broken.gguf'; lacks 'no model fits'
"$EBB" run -n 1 hello 2>"$dir/out" >/dev/null; has 'took the built-in guide: '; has 'broken.gguf'
"$EBB" plan >"$dir/out"; has 'took the built-in guide: '; lacks 'GB/s'
cp "$dir/m/broken.gguf" "$dir/m/broken2.gguf"
says; has 'took the built-in guide: none of the 2 model files can be used; ebb plan says why'
rm "$dir/m/broken.gguf" "$dir/m/broken2.gguf"
cp models/guide.gguf "$dir/m/one.gguf"
says; lacks took
cp models/guide.gguf "$dir/m/two.gguf"
says; has 'took one.gguf: '; has 'Q8_0 fits with a context of '
"$EBB" plan >"$dir/out"; has '* full'; has 'one.gguf'; has 'two.gguf'; has 'took one.gguf: '
says -m "$dir/m/two.gguf"; lacks took
says; has 'took two.gguf, as last time; -m auto chooses again'
"$EBB" plan >"$dir/out"; has 'ebb takes the one you chose last: '
"$EBB" plan -m auto >"$dir/out"; has 'took one.gguf: '
"$EBB" plan --json >"$dir/out"; has '"taken":true'
says -m auto; has 'took one.gguf: '
says; has 'took one.gguf: '
printf 'GGUF' >"$dir/m/broken.gguf"
"$EBB" plan >"$dir/out"; has 'cannot run'; has 'broken.gguf'
"$EBB" run -p hello -n 4 -v -m "$dir/m/two.gguf" >"$dir/out" 2>&1
says; has 'took one.gguf: '                      # a script's choice is not the user's
