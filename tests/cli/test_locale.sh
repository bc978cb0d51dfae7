#!/bin/sh
# Lines are drawn by what the locale's characters are, whatever its name says of them.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
[ -d /usr/lib/locale/C.utf8 ] || { echo "there is no C.utf8 here to copy"; exit 77; }
mkdir "$dir/locales" && cp -R /usr/lib/locale/C.utf8 "$dir/locales/xx_XX" || exit 1
draws() {
    printf 'a\n/tree\n/quit\n' | env -u LC_CTYPE -u LANG LOCPATH="$dir/locales" LC_ALL="$2" "$EBB" --plain --private -m guide -n 1 >"$dir/out" 2>&1 ||
        fail "LC_ALL=$2: $(cat "$dir/out")"
    grep -qF -- "$1 1 you: a" "$dir/out" || fail "LC_ALL=$2: no '$1' in $(cat "$dir/out")"
}
draws • xx_XX                                    # as en_IN, which has UTF-8 alone
draws • nowhere.UTF-8
draws '|' nowhere
draws '|' C
