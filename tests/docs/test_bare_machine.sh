#!/bin/sh
# What the Makefile builds does not depend on what it is going to install: without a compiler it names the same objects.
set -eu
objects() { make -n -B "$@" all | grep -oE '[A-Za-z0-9_/]+\.o\b' | sort -u; }
unset MAKEFLAGS MFLAGS MAKELEVEL
here=$(objects)
bare=$(objects CC=/nonexistent/cc)
[ "$here" = "$bare" ] || { echo "without a compiler other objects are built:"; echo "$bare"; exit 1; }
echo "$here" | grep -q /kernels/ || { echo "no kernels among the objects"; exit 1; }
# A cross compiler's name decides, even where it is not installed.
for pair in aarch64-linux-gnu-gcc:arm x86_64-linux-gnu-gcc-12:x86; do
    objects CC="/nonexistent/${pair%:*}" | grep -q "/kernels/${pair#*:}/" || { echo "${pair%:*} builds no kernels of ${pair#*:}"; exit 1; }
done
