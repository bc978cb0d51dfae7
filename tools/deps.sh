#!/bin/sh
# deps.sh - name the Debian packages that are missing and install them.
# Through apt as root, with sudo otherwise; on another system it names them and stops.
set -eu
build="gcc libc6-dev libncurses-dev libutf8proc-dev libsqlite3-dev libpcre2-dev libjansson-dev libmd4c-dev liburing-dev libsodium-dev libcurl4-openssl-dev libmicrohttpd-dev ca-certificates"
test="libcmocka-dev tmux python3 python3-numpy g++ pkg-config"
deb="$build build-essential debhelper fakeroot"
screenshot="$build tmux python3 ncurses-term"
guide="python3 python3-numpy python3-torch libopenblas0-pthread"
case "${1:-build}" in
build) want=$build ;;
test) want="$build $test" ;;
deb) want="$deb" ;;
screenshot) want="$screenshot" ;;
guide) want="$guide" ;;
*) echo "usage: deps.sh build|test|deb|screenshot|guide" >&2; exit 2 ;;
esac
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: this system has no apt.  Please install what these Debian packages hold:" >&2
    echo "  $want" >&2
    # Nothing can be checked here, so let the compiler be the judge.
    exit 0
fi
missing=
for p in $want; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "missing Debian packages:$missing"
sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "deps.sh: please run as root: apt-get install$missing" >&2; exit 1; }
    sudo=sudo
fi
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing ||
    { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing; }
