# The model inside the program: it answers about ebb, remembers the turn before, and declines the rest.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_DATA_HOME=$dir/data EBB_MODELS=
export XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME EBB_MODELS
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
$EBB --help 2>/dev/null | grep -q '^ *\(ebb \)*run ' || { echo "this program has no run command"; exit 77; }

ask() { want=$1; shift; got=$($EBB run --greedy -n 120 "$@" </dev/null) || fail "$*: exit $?"
    case $got in *"$want"*) ;; *) fail "$*: no '$want' in: $got" ;; esac; }
ask /undo -s undo -p "What does /undo do?"
ask /redo -s undo -p "and how do I get it back?"
ask "piece of text" -p "What is a token?"
ask "ebb pull" -p "How do I get a model?"
ask "--draft" -p "What is a draft model?"
ask "larger model" -p "Who was the king of France?"
