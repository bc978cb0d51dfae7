#!/bin/sh
# The tarball of the sources is the same bytes each time, holds what is committed, and names this version everywhere.
set -eu
git rev-parse --git-dir >/dev/null 2>&1 || { echo "no repository here"; exit 77; }
fail() { echo "$1"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s dist
tarball=$(ls build/ebb-*.tar.gz)
mv "$tarball" "$dir/first"
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 make -s dist)
cmp "$tarball" "$dir/first" || fail "made twice, it differs"
version=${tarball#build/ebb-}; version=${version%.tar.gz}
tar -tzf "$tarball" | sed 's|^[^/]*/||' | grep -v '/$' | LC_ALL=C sort >"$dir/has"
git ls-files | grep -v '^debian/' | LC_ALL=C sort >"$dir/wants"
cmp -s "$dir/has" "$dir/wants" || fail "it holds other files than are committed: $(diff "$dir/has" "$dir/wants" | head -n 3)"
head -n 1 debian/changelog | grep -q "^ebb ($version-" || fail "debian/changelog names another version than include/ebb/version.h"
grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md does not know version $version"
[ "$("$EBB" --version | sed -n '1s/^ebb //p')" = "$version" ] || fail "ebb --version says another version"
soname=${version%.*}
grep -q "^Package: libebb$soname$" debian/control || fail "the library's package is not named after its soname"
