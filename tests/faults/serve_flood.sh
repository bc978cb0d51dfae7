#!/bin/sh
# serve_flood.sh EBB REQUESTS BROKEN - serve_flood.py in a home of its own.
dir=$(mktemp -d /tmp/ebb-flood-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS
PYTHONPATH=tests/support python3 -B tests/faults/serve_flood.py "$1" "$dir" "$2" "$3"
