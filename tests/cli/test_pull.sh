#!/bin/sh
# ebb pull: from a word to a link, from a link to a file in the right place, and what is said when it does not come.
# A stand-in for curl brings files from a folder, goes on where a file stopped, and fails as curl does.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
export XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir/c" XDG_CACHE_HOME="$dir/k" XDG_DATA_HOME="$dir/d" SERVER="$dir/server"
unset EBB_MODELS HF_ENDPOINT
there=$dir/d/ebb/models
hub=$SERVER/huggingface.co/me/Tiny-GGUF/resolve/main
mkdir -p "$hub" "$dir/bin"
cp models/guide.gguf "$hub/Tiny-Q4_K_M.gguf"
cp models/guide.gguf "$hub/Tiny.IQ4_XS.gguf"
printf '<!doctype html>' >"$SERVER/page.gguf"
cat >"$dir/bin/curl" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in --output) out=$2; shift ;; --url) url=$2; shift ;; esac
    shift
done
echo "$url" >>"$SERVER/asked"
[ ! -e "$SERVER/fail" ] || exit "$(cat "$SERVER/fail")"
file=$SERVER/${url#*//}
[ -e "$file" ] || exit 22
have=$(wc -c 2>/dev/null <"$out" || echo 0)
[ "$have" -lt "$(wc -c <"$file")" ] || exit 22
tail -c +$((have + 1)) "$file" >>"$out"
END
chmod +x "$dir/bin/curl"
PATH=$dir/bin:$PATH
export PATH
fail() { echo "$*"; exit 1; }
says() {                                         # exit status, words of ebb, text
    "$EBB" $2 >"$dir/out" 2>&1 </dev/null
    got=$?
    [ $got -eq "$1" ] || fail "exit $got, not $1: ebb $2: $(cat "$dir/out")"
    grep -qF -- "$3" "$dir/out" || fail "ebb $2 says: $(cat "$dir/out")"
}
asked() { [ "$(tail -n 1 "$SERVER/asked")" = "$1" ] || fail "asked for $(tail -n 1 "$SERVER/asked"), not $1"; }

# The words, and the links that they are.
says 0 'pull me/Tiny-GGUF' "$there/Tiny-Q4_K_M.gguf"
grep -qF 'ebb -m Tiny-Q4_K_M' "$dir/out" || fail "$(cat "$dir/out")"
asked https://huggingface.co/me/Tiny-GGUF/resolve/main/Tiny-Q4_K_M.gguf
cmp -s "$hub/Tiny-Q4_K_M.gguf" "$there/Tiny-Q4_K_M.gguf" || fail "another file"
says 0 'run -m tiny --greedy -n 3 hello' 'Hello'
says 0 'pull me/Tiny-GGUF/Tiny.IQ4_XS.gguf' "$there/Tiny.IQ4_XS.gguf"
rm "$there/Tiny.IQ4_XS.gguf"
says 0 'pull https://huggingface.co/me/Tiny-GGUF/blob/main/Tiny.IQ4_XS.gguf' "$there/Tiny.IQ4_XS.gguf"
asked https://huggingface.co/me/Tiny-GGUF/resolve/main/Tiny.IQ4_XS.gguf
says 1 'pull me/Tiny-GGUF:Q8_0' 'https://huggingface.co/me/Tiny-GGUF/tree/main'
asked https://huggingface.co/me/Tiny-GGUF/resolve/main/Tiny-Q8_0.gguf
says 1 'pull hf.co/me/Other' 'gives no such file'
asked https://huggingface.co/me/Other/resolve/main/Other-Q4_K_M.gguf
n=$(wc -l <"$SERVER/asked")
for word in llama3 ./me/x me/ /me/x ''; do says 2 "pull $word" 'OWNER/REPO'; done
says 2 'pull https://x.org/model.bin' 'is no .gguf file'
says 2 'pull one two' 'usage'
[ "$(wc -l <"$SERVER/asked")" = "$n" ] || fail "asked for nothing sensible"

# What is there is not fetched again; what was interrupted goes on; what was whole is taken.
says 0 'pull me/Tiny-GGUF' "$there/Tiny-Q4_K_M.gguf"
[ "$(wc -l <"$SERVER/asked")" = "$n" ] || fail "fetched again"
head -c 100000 "$hub/Tiny-Q4_K_M.gguf" >"$there/Tiny-Q4_K_M.gguf.part"
rm "$there/Tiny-Q4_K_M.gguf"
says 0 'pull me/Tiny-GGUF' "$there/Tiny-Q4_K_M.gguf"
cmp -s "$hub/Tiny-Q4_K_M.gguf" "$there/Tiny-Q4_K_M.gguf" || fail "it did not go on"
mv "$there/Tiny-Q4_K_M.gguf" "$there/Tiny-Q4_K_M.gguf.part"
says 0 'pull me/Tiny-GGUF' "$there/Tiny-Q4_K_M.gguf"
[ ! -e "$there/Tiny-Q4_K_M.gguf.part" ] || fail "a part is left"

# Another place; a page instead of a file; curl's failures, with the next step.
mkdir "$dir/mine"
EBB_MODELS=$dir/nowhere:$dir/mine says 0 'pull http://huggingface.co/me/Tiny-GGUF/resolve/main/Tiny-Q4_K_M.gguf' "$dir/mine/Tiny-Q4_K_M.gguf"
says 1 'pull http:///page.gguf' 'what the server sent is no GGUF file'
[ ! -e "$there/page.gguf" ] && [ ! -e "$there/page.gguf.part" ] || fail "the page is kept"
for pair in '7=the same command goes on' '23=disk is full' '33=begin anew' '99=curl failed (99)'; do
    echo "${pair%%=*}" >"$SERVER/fail"
    says 1 'pull me/New-GGUF' "${pair#*=}"
done
rm "$SERVER/fail" "$dir/bin/curl"
PATH=/nowhere "$EBB" pull me/New-GGUF 2>"$dir/out" && fail "fetched without curl"
grep -q 'apt-get install curl' "$dir/out" || fail "without curl: $(cat "$dir/out")"

# All parts of a model in parts.
cat >"$dir/bin/curl" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in --output) out=$2; shift ;; --url) echo "$2" >>"$SERVER/parts"; shift ;; esac
    shift
done
echo GGUF >"$out"
END
chmod +x "$dir/bin/curl"
says 1 'pull me/Big/Big-00001-of-00003.gguf' 'Big-00001-of-00003.gguf'
[ "$(sed 's,.*/,,' "$SERVER/parts" | tr '\n' ' ')" = 'Big-00001-of-00003.gguf Big-00002-of-00003.gguf Big-00003-of-00003.gguf ' ] ||
    fail "parts: $(cat "$SERVER/parts")"
