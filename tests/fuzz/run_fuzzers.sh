#!/bin/sh
# Run fuzzers: run.sh SECONDS PROGRAM...  Each keeps what it has found of use in $FUZZ_DIR/<name>
# (build/fuzz without), begins with its seeds and what tests/ and ../shared have of its kind, and stops at the first fault.
seconds=$1
shift
dir=${FUZZ_DIR:-build/fuzz}
shared=${EBB_SHARED:-../shared}
failed=0

seed() {                                         # seed NAME FILE...: small files, each beside a byte or more of choice
    name=$1
    shift
    for f; do
        if [ -f "$f" ]; then head -c 20000 "$f" >"$dir/$name/seed-$(basename "$f")"; fi
    done
}

for p; do
    name=$(basename "$p")
    mkdir -p "$dir/$name"
    case $name in
    fuzz_template) seed "$name" "$shared"/data/templates/*.jinja ;;
    fuzz_import) seed "$name" "$shared"/data/templates/cases.json README.md ;;
    fuzz_view | fuzz_tokenizer) seed "$name" README.md docs/*.md ;;
    esac
    case $name in fuzz_template) most=20000 ;; *) most=4096 ;; esac
    echo "$name, $seconds s"
    nice -n 19 "$p" -max_total_time="$seconds" -max_len=$most -rss_limit_mb=2048 -timeout=200 -verbosity=0 -print_final_stats=0 \
        -artifact_prefix="$dir/$name-" "$dir/$name" tests/fuzz/seeds/"$name" || failed=1
done
exit $failed
