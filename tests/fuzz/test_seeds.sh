#!/bin/sh
# Every fuzzer takes its seeds again: inputs that once failed, and a few that reach each part of its parser.
bad=0
for folder in tests/fuzz/seeds/*/; do
    name=$(basename "$folder")
    "$(dirname "$EBB")/tests/fuzz/$name" "$folder" >"/tmp/ebb-seeds-$$" 2>&1 || {
        echo "$name:"
        tail -n 20 "/tmp/ebb-seeds-$$"
        bad=1
    }
    rm -f "/tmp/ebb-seeds-$$"
done
for f in tests/fuzz/fuzz_*.c; do
    [ -d "tests/fuzz/seeds/$(basename "$f" .c)" ] || { echo "no seeds for $f"; bad=1; }
done
exit $bad
