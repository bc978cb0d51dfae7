#!/bin/sh
# pressure.sh PROGRAM [ROUNDS [MODEL LIMIT_MIB TAKE_MIB]] - fuzz_pressure in a cgroup of its own, once with
# the weights mapped and once with copies; needs root and a memory cgroup that can be written to.
set -eu
program=$1 rounds=${2:-100}
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/ebb-pressure.$$ limit=memory.max
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
else
    group=/sys/fs/cgroup/memory/ebb-pressure.$$ limit=memory.limit_in_bytes
fi
mkdir "$group" 2>/dev/null || { echo "pressure: no cgroup can be made here: not run"; exit 0; }
file=$(mktemp /var/tmp/ebb-pressure-XXXXXX)
trap 'rm -f "$file"; rmdir "$group" 2>/dev/null || true' EXIT
run() {                                          # model, MiB of the group, MiB that a neighbour takes at most
    echo "in $2 MiB:"
    echo $(($2 * 1048576)) >"$group/$limit"
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$program" "$1" "$rounds" "$3"
}
if [ $# -ge 5 ]; then
    run "$3" "$4" "$5"
else
    "$program" --write "$file"
    run "$file" 520 130                          # a quarter of it, as 1.5 of 6 GiB
    run "$file" 520 300
    run "$file" 440 130
fi
