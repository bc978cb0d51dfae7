#!/bin/sh
# `make uninstall` removes what `make install` put there, and nothing that was beside it.
set -eu
case $EBB in
build/release/*) ;;
*) echo "it is installed from the release build"; exit 77 ;;
esac
[ -f build/release/lib/libebb.a ] || { echo "make lib builds it"; exit 77; }
fail() { echo "$1"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
files() { (cd "$dir/root" && find . ! -type d | LC_ALL=C sort); }
put() { make -s "$@" DESTDIR="$dir/root" PREFIX=/opt/here LIBDIR=/opt/lib64 >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }; }

# Other programs' files, and those of a version of ebb that had another library.
for f in bin/other lib/systemd/user/other.socket share/man/man1/other.1 include/ebb/theirs.h; do
    mkdir -p "$dir/root/opt/here/$(dirname $f)" && echo theirs >"$dir/root/opt/here/$f"
done
mkdir -p "$dir/root/opt/lib64" && echo older >"$dir/root/opt/lib64/libebb.so.0.0"
before=$(files)
put install
[ "$(files)" != "$before" ] && [ -x "$dir/root/opt/here/bin/ebb" ] || fail "nothing was installed"
put uninstall
[ "$(files)" = "$before" ] || fail "left, or removed with it: $(files)"
rm "$dir/root/opt/here/include/ebb/theirs.h"
put uninstall                                    # of what is gone already, nothing is said
[ ! -d "$dir/root/opt/here/include/ebb" ] || fail "its own folder of headers is left"
