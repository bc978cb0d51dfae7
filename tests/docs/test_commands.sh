#!/bin/sh
# Every command that the documents show is run, with a home of its own and small files in the place of large ones.
#
# A command stands behind "$ " in a block of code; lines behind "> " are typed into it.  Each document is one session in
# one folder.  These stand in for what must not happen here: sudo and apt-get do nothing, make shows what it would do (but
# `make run` runs ebb), curl brings the guide under the name that was asked for, a hub on the loopback does so for `ebb pull`; man draws ebb's page.  A command with the comment
# "# long" is parsed, and its options are looked up, but it is not run.
set -eu
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
root=$PWD
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0 failed=0

mkdir "$dir/bin"
stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$dir/bin/$1"; chmod +x "$dir/bin/$1"; }
stand_in sudo 'exec "$@"'
stand_in apt-get 'exit 0'
stand_in make '[ "$1" != run ] || exec ebb; exec '"$(command -v make)"' -n -C '"$root"' "$@" >/dev/null'
stand_in curl 'for url; do :; done; exec cp '"$root"'/models/guide.gguf "${url##*/}"'
stand_in man "exec $(command -v mandoc || echo cat) $root/docs/\$1.1"
ln -s "$EBB" "$dir/bin/ebb"
hub=$dir/hub/files/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF
mkdir -p "$hub"
for t in Q4_K_M Q8_0; do ln -s "$root/models/guide.gguf" "$hub/Meta-Llama-3.1-8B-Instruct-$t.gguf"; done
python3 tests/support/hub.py "$dir/hub" &
server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
for i in $(seq 3000); do [ -e "$dir/hub/port" ] && break; sleep 0.1; done
mkdir "$dir/engine"
python3 tests/support/engine.py "$dir/engine" &  # whatever host a page names, as its proxy
server="$server $!"
for i in $(seq 3000); do [ -e "$dir/engine/port" ] && break; sleep 0.1; done
echo kind=llama > "$dir/engine/how"
http_proxy=http://127.0.0.1:$(cat "$dir/engine/port") no_proxy=127.0.0.1
export http_proxy no_proxy
HF_ENDPOINT=http://127.0.0.1:$(cat "$dir/hub/port")
export HF_ENDPOINT
PATH=$dir/bin:$PATH LC_ALL=C.UTF-8
export PATH LC_ALL
unset EBB_MODELS XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME

# The session that a page shows: "$ command" and "> typed", as they are in its code blocks.
shown() {
    case $1 in
    *.1) sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl ebb/$ ebb/p' "$1" ;;
    *) awk '/^```/ { code = !code; next } code && /^[$>] / || /^    [$>] / { sub(/^    /, ""); print }' "$1" ;;
    esac
}

# Options that a line gives to ebb must be options of that subcommand.
options_exist() {
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$1" | sed "s/'[^']*'//g; s/#.*//; s/.*\(^\| \)ebb\( \|\$\)/ /; s/[|<>;&].*//")
    sub=chat
    case ${1:-} in -* | '') ;; *) sub=$1 ;; esac
    for word; do
        case $word in
        --help | --version) ;;
        -[0-9]*) ;;
        -*) "$EBB" "$sub" --help | grep -qE -- "(^|[ ,])$word( |,|\$)" || { echo "ebb $sub has no $word"; return 1; } ;;
        esac
    done
}

session() {
    page=$1
    HOME=$dir/$(echo "$page" | tr / _)
    export HOME
    mkdir -p "$HOME/here"
    cd "$HOME/here"
    printf 'The tide comes and goes.\n' >notes.txt
    shown "$root/$page" >"$dir/shown"
    # A page that fetches no model has the files that it names.
    grep -q '^\$ curl' "$dir/shown" ||
        for f in $(grep -o '[A-Za-z0-9._-]*\.gguf' "$dir/shown"); do ln -sf "$root/models/guide.gguf" "$f"; done
    printf '\n$ :\n' >>"$dir/shown"
    command=
    while IFS= read -r line; do
        case $line in
        '> '*) printf '%s\n' "${line#> }" >>"$dir/typed"; continue ;;
        '$ '*) ;;
        *) continue ;;
        esac
        if [ -n "$command" ]; then
            n=$((n + 1))
            case " $command" in *" ebb "*) options_exist "$command" || { echo "$page: $command"; failed=1; } ;; esac
            sh -nc "$command" || { echo "$page: not a command: $command"; failed=1; }
            case $command in
            *'# long'*) ;;
            'cd '*) eval "$command" ;;
            *) sh -c "$command" <"$dir/typed" >"$dir/out" 2>&1 || {
                echo "$page: exit $?: $command"; tail -n 5 "$dir/out"; failed=1; } ;;
            esac
        fi
        command=${line#\$ }
        : >"$dir/typed"
    done <"$dir/shown"
    cd "$root"
}

for page in README.md docs/*.md docs/ebb.1 models/*.md; do
    session "$page"
done
# What the README promised is there: the conversation of its model, with a question and its follow-up.
HOME=$dir/README.md
"$EBB" sessions list | grep -q 'sea salty' || { echo "the README's conversation is not there"; failed=1; }
"$EBB" sessions show "$("$EBB" sessions list --json | sed -n 's/.*"name":"\([^"]*sea salty[^"]*\)".*/\1/p' | head -n 1)" |
    grep -q 'how do fish live' || { echo "ebb -c did not go on with it"; failed=1; }

# Commands within the text: their subcommands and options exist, and so do make's targets.
for page in README.md docs/*.md models/*.md; do
    grep -o '`[^`]*`' "$page" | tr -d '`' | grep -E '^(ebb|make)( |$)' >"$dir/inline" || continue
    while IFS= read -r line; do
        n=$((n + 1))
        case $line in
        make) ;;
        make*) target=$(echo "$line" | cut -d' ' -f2); grep -q "^$target:" Makefile || { echo "$page: $line"; failed=1; } ;;
        *) options_exist "$line" || { echo "$page: $line"; failed=1; } ;;
        esac
    done <"$dir/inline"
done
# Files that the pages point to.
for page in README.md docs/*.md models/*.md; do
    for link in $(grep -o '](\([^)#]*\))' "$page" | sed 's/](\(.*\))/\1/' | grep -v '^http'); do
        n=$((n + 1))
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: there is no $link"; failed=1; }
    done
done
[ $n -ge 30 ] || { echo "only $n commands were found"; failed=1; }
echo "$n checked"
exit $failed
