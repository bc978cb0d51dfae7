#!/bin/sh
# run.sh TEST... - run test programs and scripts, print one line each and a total.
# Exit status 1 if any failed.  A script's exit status 77 means skipped.
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
home=$(mktemp -d) || exit 1                      # a test keeps nothing in the user's folders, and finds nothing there
XDG_CACHE_HOME=$home/cache XDG_STATE_HOME=$home/state XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data
export XDG_CACHE_HOME XDG_STATE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
trap 'rm -rf "$log" "$home"' EXIT
for t in "$@"; do
    name=${t#build/*/tests/}
    case $t in
    *.sh) sh "$t" >"$log" 2>&1; status=$?
        case $status in
        0) passed=$((passed + 1)); echo "ok      $name" ;;
        77) skipped=$((skipped + 1)); echo "skipped $name: $(tail -n 1 "$log")" ;;
        *) failed=$((failed + 1)); echo "FAILED  $name"; sed 's/^/    /' "$log" ;;
        esac
        continue ;;
    esac
    CMOCKA_MESSAGE_OUTPUT=TAP "$t" >"$log" 2>&1; status=$?
    # cmocka 1.1.5 prints a skipped test as "not ok N # SKIP name"
    sk=$(grep -c '^\(not \)*ok .*# SKIP' "$log")
    ok=$(grep '^ok [0-9]' "$log" | grep -vc '# SKIP')
    bad=$(grep '^not ok' "$log" | grep -vc '# SKIP')
    passed=$((passed + ok)); skipped=$((skipped + sk))
    if [ $status -ne 0 ] || [ "$bad" -gt 0 ]; then
        failed=$((failed + (bad > 0 ? bad : 1)))
        echo "FAILED  $name"; grep -v '^ok ' "$log" | sed 's/^/    /'
    elif [ "$sk" -gt 0 ]; then
        echo "ok      $name ($ok, $sk skipped)"
    else
        echo "ok      $name ($ok)"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
