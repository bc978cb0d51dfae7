# Conversations computed again: the same with other threads and kernels, told apart with another KV type, and what cannot be compared is said.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
EBB=${EBB:-build/release/ebb}
HOME=$dir XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config XDG_DATA_HOME=$dir/data
export HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
unset EBB_MODELS
fail() { echo "$*"; exit 1; }
ebb() { "$EBB" "$@" </dev/null; }

ebb run -s talk --seed 5 "How do I leave?" >/dev/null || fail "run"
ebb run -s talk --seed 7 --temp 2 --top-k 0 --top-p 1 --min-p 0 -n 60 "And then?" >/dev/null || fail "run, at random"
ebb run -s talk --seed 6 --json "What is a branch?" >"$dir/json" || fail "run --json"
grep -q '"seed":[1-9]' "$dir/json" || fail "no seed: $(cat "$dir/json")"
for how in "" "-t 1 --cpu scalar" "--resident 0 --chunk 7" "--io pread --ram 300M"; do
    ebb sessions replay talk $how >"$dir/out" || fail "replay $how: $(cat "$dir/out")"
    grep -q '^message 2: [0-9]* tokens, the same$' "$dir/out" || fail "replay $how says: $(cat "$dir/out")"
    grep -q '^3 of 3 answers computed again, [0-9]* tokens: the same, bit for bit$' "$dir/out" || fail "replay $how ends: $(cat "$dir/out")"
done
ebb sessions replay talk --json >"$dir/json" || fail "replay --json"
grep -q '"same":true' "$dir/json" || fail "says: $(cat "$dir/json")"

# A seed that was not it, behind ebb's back.
python3 - "$dir/state/ebb/sessions.db" <<'PY' || { echo "no python3 with sqlite3"; exit 77; }
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
row, draws = db.execute("select id, draws from messages where role = 2 order by id limit 1 offset 1").fetchone()
draws = json.loads(draws)
draws[0]["seed"] += 1
db.execute("update messages set draws = ? where id = ?", (json.dumps(draws), row))
db.commit()
PY
ebb sessions replay talk >"$dir/out"
[ $? -eq 1 ] || fail "a difference exits with $?"
grep -q '^message 4: differs after [0-9]* tokens: it was ' "$dir/out" || fail "says: $(cat "$dir/out")"
grep -q ': 1 differs$' "$dir/out" || fail "ends: $(cat "$dir/out")"
ebb sessions replay talk --json >"$dir/json"
[ $? -eq 1 ] || fail "a difference exits with $?, with --json"
grep -q '"outcome":"differs".*"same":false' "$dir/json" || fail "says: $(cat "$dir/json")"

# Nothing compared is no proof.
printf '[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]' >"$dir/talk.json"
ebb sessions import "$dir/talk.json" other >/dev/null || fail "import"
ebb sessions replay other >"$dir/out" 2>"$dir/err" && fail "an imported conversation was proven"
grep -q 'no answer here has a record of how it was sampled' "$dir/err" || fail "says: $(cat "$dir/err")"
ebb sessions replay nobody 2>"$dir/err" && fail "a conversation that is not there"
grep -q "there is no session 'nobody'" "$dir/err" || fail "says: $(cat "$dir/err")"
exit 0
