#!/bin/sh
# arm-root.sh DIR - bring the libraries for AArch64 into DIR, for a cross compiler: nothing is installed, and
# apt's own lists stay as they are.
set -eu
[ $# = 1 ] || { echo "usage: arm-root.sh DIR" >&2; exit 2; }
[ ! -e "$1/complete" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "arm-root.sh: this system has no apt" >&2; exit 1; }
mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/packages"
cd "$1"
here=$PWD
: > status
cat > apt.conf <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State::Lists "$here/lists";
Dir::State::status "$here/status";
Dir::Cache "$here/cache";
EOF
export APT_CONFIG="$here/apt.conf"
apt-get update -qq
(cd packages && apt-get download -qq libncurses-dev libncurses6 libncursesw6 libtinfo6 libutf8proc-dev libutf8proc2 \
    libsqlite3-dev libsqlite3-0 libpcre2-dev libpcre2-8-0 libjansson-dev libjansson4 libmd4c-dev libmd4c0 \
    liburing-dev liburing2 libcurl4-openssl-dev libcmocka-dev libcmocka0)
for p in packages/*.deb; do dpkg -x "$p" .; done
rm -rf lists cache packages
touch complete
