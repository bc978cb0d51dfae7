# named_tests.sh - for the scripts beside it: tests that a page names as `room/test_file.c: test_name` or `room/test_file.sh`.
#
# check_named_tests PAGE TEXT - each test that the file TEXT names is there, is a test and is in its file's table of tests;
# else a line says so of PAGE, and status=1.  n_named: how many there are.
check_named_tests() {
    n_named=0
    for ref in $(grep -oE '`[a-z/_0-9]+/test_[a-z_0-9]+\.(c|sh)(: [a-z_0-9]+)?`' "$2" | tr -d '`' | tr ' ' '~' | sort -u); do
        n_named=$((n_named + 1))
        file=tests/${ref%%:*} name=
        case $ref in *:~*) name=${ref#*:~} ;; esac
        if [ ! -f "$file" ]; then
            echo "$1: there is no $file"; status=1
        elif [ -n "$name" ]; then
            grep -q "^static void $name(void \*\*" "$file" || { echo "$1: $file has no $name"; status=1; }
            [ "$(grep -cw "$name" "$file")" -ge 2 ] || { echo "$1: $file does not run $name"; status=1; }
        fi
    done
}
