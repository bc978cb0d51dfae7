#!/bin/sh
# docs/FORMATS.md names every architecture that runs, and no other.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n 's/^const ebb_arch .*\.name = "\([^"]*\)".*/\1/p' src/engine/model/*.c | sort >"$dir/run"
sed -n '/^### Architectures/,/^Shapes/s/^| *\(`[^|]*\)|.*/\1/p' docs/FORMATS.md | grep -o '`[^`]*`' | tr -d '`' | sort >"$dir/named"
[ "$(grep -c '&ebb_arch_' src/engine/model/arch.c)" -eq "$(wc -l <"$dir/run")" ] || { echo "an architecture was not found"; exit 1; }
diff "$dir/run" "$dir/named"
