#!/bin/sh
# What the compiler gives against a fault that is there all the same, looked for in the program itself; and nothing of a
# source tree's path in it, so that two trees make the same bytes.
command -v readelf >/dev/null || { echo "readelf is not there"; exit 77; }
fail() { echo "$1"; exit 1; }
# has WORDS WHAT OPTION...
has() {
    words=$1 what=$2; shift 2
    readelf -W "$@" "$EBB" | grep -q -- "$words" || fail "the program has no $what"
}
readelf -Ws "$EBB" | grep -q ' __asan_init\| __tsan_init' && { echo "a sanitizer's build has its own ways"; exit 77; }
has 'DYN ' "position-independent code" -h
has 'Flags:.*PIE' "mark of a position-independent program" -d
has 'GNU_RELRO' "table of addresses that is read only once it is filled" -l
has 'Flags:.*NOW' "addresses bound at the start" -d
has '__stack_chk_fail' "stack protector" --dyn-syms
readelf -Wl "$EBB" | grep 'GNU_STACK' | grep -q 'RW ' || fail "its stack can be executed"
case $EBB in
*/debug/*) ;;                                    # without optimization the checks of lengths cannot be compiled
*) has '__[a-z]*_chk@' "checks of lengths (_FORTIFY_SOURCE)" --dyn-syms ;;
esac
grep -qF "$PWD" "$EBB" && fail "the path of the source tree is in it"
grep -rnE '__(DATE|TIME|TIMESTAMP)__' src include && fail "a date of the build would be in it"

# One file with a path in its debug information, a macro of its place and an embedded text, compiled in two trees.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
for tree in one another-tree; do
    mkdir "$dir/$tree" && cp -r Makefile include src themes tools prompts "$dir/$tree/" && mkdir "$dir/$tree/models" &&
        cp models/suggestions.txt models/guide.gguf "$dir/$tree/models/" || exit 1
    mkdir "$dir/$tree/build" && touch "$dir/$tree/build/deps-build"
    (cd "$dir/$tree" && CCACHE_DISABLE=1 make -s -o build/deps-build build/release/tui/term/theme.o build/release/core/os/file.o) || fail "no objects in $tree"
done
for o in tui/term/theme.o core/os/file.o; do
    cmp "$dir/one/build/release/$o" "$dir/another-tree/build/release/$o" || fail "$o differs from tree to tree"
done
