#!/bin/sh
# run.sh TEST... - run test programs and scripts, print one line each and a total.
# Exit status 1 if any failed.  A script's exit status 77 means skipped.  EBB_RUN: what runs the programs, an emulator.
#
# Each test gets the same surroundings whoever runs it, and as much time as anything but a hang could need (EBB_TEST_LIMIT_S).
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
home=$(mktemp -d) || exit 1                      # a test keeps nothing in the user's folders, and finds nothing there
limit=${EBB_TEST_LIMIT_S:-1800}
HOME=$home XDG_CACHE_HOME=$home/cache XDG_STATE_HOME=$home/state XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data
EBB_CHECK=1                                      # the program checks its rules in every build (base/invariant.h)
export EBB_CHECK HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
OLLAMA_MODELS=$home/ollama                       # or a service's would be found, outside every home
export OLLAMA_MODELS
unset XDG_RUNTIME_DIR EBB_MODELS HF_ENDPOINT HF_TOKEN HF_TOKEN_PATH HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE LLAMA_CACHE NO_COLOR ACCESSIBLE TMUX STY VISUAL EDITOR CDPATH
unset http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
env --default-signal=HUP true 2>/dev/null && heeds='env --default-signal=HUP' || heeds=     # also under nohup
trap 'rm -rf "$log" "$home"' EXIT
trap 'echo "STOPPED in $name"; exit 130' INT TERM HUP

# Its output to $log, its exit status; one that hangs is ended, and says so.
run() {
    $heeds timeout --foreground -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
    status=$?
    [ $status -ne 124 ] && [ $status -ne 137 ] || echo "no end after $limit s" >>"$log"
    return $status
}

for t in "$@"; do
    name=${t#build/*/tests/}
    case $t in
    *.sh) run sh "$t"; status=$?
        case $status in
        0) passed=$((passed + 1)); echo "ok      $name" ;;
        77) skipped=$((skipped + 1)); echo "skipped $name: $(tail -n 1 "$log")" ;;
        *) failed=$((failed + 1)); echo "FAILED  $name"; sed 's/^/    /' "$log" ;;
        esac
        continue ;;
    esac
    run env CMOCKA_MESSAGE_OUTPUT=TAP $EBB_RUN "$t"; status=$?
    # cmocka 1.1.5 prints a skipped test as "not ok N # SKIP name"
    sk=$(grep -c '^\(not \)*ok .*# SKIP' "$log")
    ok=$(grep '^ok [0-9]' "$log" | grep -vc '# SKIP')
    bad=$(grep '^not ok' "$log" | grep -vc '# SKIP')
    passed=$((passed + ok)); skipped=$((skipped + sk))
    if [ $status -ne 0 ] || [ "$bad" -gt 0 ]; then
        failed=$((failed + (bad > 0 ? bad : 1)))
        echo "FAILED  $name (exit $status)"; grep -v '^ok ' "$log" | sed 's/^/    /'
    elif [ "$sk" -gt 0 ]; then
        echo "ok      $name ($ok, $sk skipped)"
    else
        echo "ok      $name ($ok)"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
