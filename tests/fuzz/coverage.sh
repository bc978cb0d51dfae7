#!/bin/sh
# coverage.sh BUILD [-v]: how much of each reader the seeds reach, by line; -v names the lines that they do not.
# Every fuzzer takes its seeds once; gcc's counters beside the objects say what was run.  Lines that say that memory is
# missing are counted apart: no input reaches them, tests that let allocations fail do.
build=$1
verbose=$2
find "$build" -name '*.gcda' -exec rm -f {} +
for folder in tests/fuzz/seeds/*/; do
    "$build/tests/fuzz/$(basename "$folder")" "$folder" >/dev/null 2>&1 || { echo "$folder: a seed fails"; exit 1; }
done

# The objects of a part: folders, or files without their ending.
objects() {
    for o; do
        if [ -d "$build/$o" ]; then find "$build/$o" -name '*.gcno'; else echo "$build/$o.gcno"; fi
    done
}

# name, then what it consists of; a line for each file, and one for the part
part() {
    name=$1
    shift
    for o; do
        [ -e "$build/$o" ] || [ -e "$build/$o.gcno" ] || { echo "$name: there is no src/$o.c"; exit 1; }
    done
    # shellcheck disable=SC2046
    n_memory=$(gcov --stdout --relative-only $(objects "$@") 2>/dev/null | grep -c '^ *#####:.*\(NOMEM\|failed = true\)')
    # shellcheck disable=SC2046
    gcov --no-output --relative-only $(objects "$@") 2>/dev/null | awk -v name="$name" -v n_memory="$n_memory" '
        /^File / { file = $2; gsub(/'\''/, "", file) }
        /^Lines executed:/ && file ~ /^src\/.*\.c$/ {
            split($2, of, ":"); share = of[2] + 0; n = $4; hit = int(share * n / 100 + 0.5)
            sum += n; sum_hit += hit; text = text sprintf("  %-44s %4d of %4d  %5.1f %%\n", file, hit, n, 100 * hit / n); file = "" }
        END { printf "%-46s %4d of %4d  %5.1f %%  and %d for want of memory\n%s", name, sum_hit, sum, sum ? 100 * sum_hit / sum : 0,
                     n_memory, text }'
    [ "$verbose" = -v ] || return 0
    # shellcheck disable=SC2046
    gcov --stdout --relative-only $(objects "$@") 2>/dev/null | awk '
        $2 == "0:Source:" || /0:Source:/ { sub(/.*0:Source:/, ""); file = $0 }
        /^ *#####:/ && file ~ /^src\/.*\.c$/ { sub(/^ *#####: */, ""); print "    " file ":" $0 }'
}

part gguf engine/gguf
part template chat/template
part tokenizer engine/tokenizer
part render tui/text/render tui/text/render_code tui/text/render_table tui/text/markdown tui/text/md_blocks tui/text/highlight tui/text/html_entity tui/text/wrap
part import chat/store/import chat/store/import_message chat/store/import_nodes chat/store/title
# Without what a pull says to the ebb that began it (pull_events, pull_process).
part http core/net/http core/net/client chat/pull/download chat/pull/download_part chat/pull/download_progress \
    chat/pull/download_reply chat/pull/hub_listing chat/pull/part_sidecar chat/pull/pull chat/pull/pull_source chat/pull/variants
part sse core/net/event_stream chat/remote/answer
part grammar engine/grammar
part schema chat/schema
part engines chat/remote
part edit tui/edit/history tui/edit/unsent tui/term/theme tui/term/keys
part store chat/store
part serve chat/serve core/net/http_server
