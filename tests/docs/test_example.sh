#!/bin/sh
# The example of include/ebb does what its first lines say, without the rest of ebb.
set -eu
ask=$(dirname "$EBB")/examples/ask
[ -x "$ask" ] || exit 77                        # `make test` builds it
said=$("$ask" models/guide.gguf "ebb plan" 12)
[ -n "$said" ] || { echo "it said nothing"; exit 1; }
[ "$said" = "$("$ask" models/guide.gguf "ebb plan" 12)" ] || { echo "another time it said something else"; exit 1; }
[ "$("$ask" models/guide.gguf "ebb plan" 3)" != "$said" ] || { echo "three tokens were twelve"; exit 1; }
why=$("$ask" /nowhere.gguf x 2>&1) && { echo "a model that is not there was opened"; exit 1; }
[ "$why" = "ask: /nowhere.gguf: no such file" ] || { echo "it said: $why"; exit 1; }
