#!/bin/sh
# arm.sh TEST... - build these tests and the program for AArch64 and run them under an emulator (`make check-arm`), as one of
# the oldest processors with the dot product extension and as one without it.  $EBB: the program of this machine.
root=$PWD/build/arm-root libs=usr/lib/aarch64-linux-gnu
[ "$(uname -m)" != aarch64 ] || { echo "skipped check-arm: make test does all of it on this machine"; exit 0; }
for p in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $p >/dev/null || { echo "skipped check-arm: no $p (Debian: gcc-aarch64-linux-gnu, qemu-user)"; exit 0; }
done
sh tools/arm-root.sh build/arm-root || { echo "skipped check-arm: no libraries for AArch64"; exit 0; }
programs=
for t in "$@"; do programs="$programs build/arm/$t"; done
# shellcheck disable=SC2086
CPPFLAGS="-isystem $root/usr/include -isystem $root/usr/include/aarch64-linux-gnu" \
LDFLAGS="-L$root/$libs -L$root/lib/aarch64-linux-gnu -Wl,-rpath-link,$root/$libs:$root/lib/aarch64-linux-gnu" \
make -s CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar B=build/arm build/arm/ebb $programs || exit 1
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu QEMU_SET_ENV="LD_LIBRARY_PATH=$root/$libs:$root/lib/aarch64-linux-gnu"
export EBB_RUN=qemu-aarch64 EBB_TEST_LIMIT_S="${EBB_TEST_LIMIT_S:-7200}"

# What the built-in model answers, as text.
answer() {
    home=$(mktemp -d) || exit 1
    env -i PATH="$PATH" HOME="$home" "$@" --temp 0 -n 40 "How much memory does a context take?"
    rm -rf "$home"
}
# emulated CPU OPTIONS
# shellcheck disable=SC2086
emulated() { answer QEMU_LD_PREFIX="$QEMU_LD_PREFIX" QEMU_SET_ENV="$QEMU_SET_ENV" QEMU_CPU="$1" qemu-aarch64 build/arm/ebb run $2; }

export QEMU_CPU=neoverse-n1
qemu-aarch64 build/arm/ebb --version || exit 1
here=$(answer "$EBB" run)
for cpu in neoverse-n1 cortex-a72; do
    for options in "" "-t 3 --chunk 7"; do
        [ -n "$here" ] && [ "$(emulated $cpu "$options")" = "$here" ] || { echo "FAILED: $cpu $options answers otherwise"; exit 1; }
    done
done
echo "ok      the answer of the built-in model is that of this machine"
# shellcheck disable=SC2086
sh tests/run.sh $programs || exit 1
echo "without the dot product extension:"
QEMU_CPU=cortex-a72 sh tests/run.sh build/arm/tests/engine/kernels/test_matmul build/arm/tests/engine/kernels/test_float
