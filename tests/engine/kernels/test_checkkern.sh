#!/bin/sh
# checkkern: every kernel of every rung gives the bits of the scalar one, by name, and a name that is none is said.
set -eu
check=$(dirname "$EBB")/tests/bench/checkkern
[ -x "$check" ] || { echo "make test builds it"; exit 77; }
said=$("$check") || { echo "$said" | grep OTHER; exit 1; }
echo "$said" | grep -q '^scalar  *Q4_K.gemm  *ok$' || { echo "Q4_K.gemm was not checked"; exit 1; }
[ "$("$check" --only q4_k --isa scalar | wc -l)" -eq 2 ] || { echo "--only q4_k --isa scalar: not gemm and unpack"; exit 1; }
"$check" --only rmsnorm --bench | grep -q 'G/s' || { echo "--bench gives no time"; exit 1; }
! "$check" --only q4 2>/dev/null || { echo "a name that no kernel has was taken"; exit 1; }
