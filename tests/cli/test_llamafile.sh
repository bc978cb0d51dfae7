#!/bin/sh
# A llamafile as a model: found in it, mapped, streamed, read past the page cache; what is damaged is one line.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
case $EBB in /*) ;; *) EBB=$PWD/$EBB ;; esac
export XDG_STATE_HOME="$dir/s" XDG_CONFIG_HOME="$dir/c" XDG_CACHE_HOME="$dir/k" XDG_DATA_HOME="$dir/d"
here=$PWD
make_file() { python3 "$here/tests/support/llamafile.py" "$@" || exit 1; }
fail() { echo "$*"; exit 1; }
status() { want=$1; shift; "$@" >out 2>err </dev/null; got=$?; [ $got -eq "$want" ] || fail "exit $got, not $want: $* ($(cat err))"; }
line() { status 1 "$EBB" run -m "$1" hello; grep -qF "$2" err || fail "$1: $(cat err)"; [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"; }
cd "$dir" || exit 1
guide=$here/models/guide.gguf
python3 - <<'P'
import struct
def text(s): return struct.pack("<Q", len(s)) + s
open("clip.gguf", "wb").write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"clip") + b"\0" * 64)
P
printf 'not a model' >notes.txt

"$EBB" run -m guide --greedy -n 16 'how do I leave ebb' >want 2>/dev/null </dev/null || fail "no answer to compare with"
answers() {
    status 0 "$EBB" run -m "$@" --greedy -n 16 'how do I leave ebb'
    cmp -s out want || fail "$*: $(cat out err)"
}
make_file --align 65536 aligned.llamafile notes.txt=notes.txt weights.gguf="$guide"
make_file odd.llamafile weights.gguf="$guide" notes.txt=notes.txt
make_file --zip64 zip64.llamafile weights.gguf="$guide"
make_file --relative relative.llamafile weights.gguf="$guide"
make_file two.llamafile mmproj.gguf=clip.gguf folder/weights.gguf="$guide"
make_file both.llamafile a.gguf="$guide" folder/b.gguf="$guide"
sha256sum *.llamafile >before

# Wherever it stands in the archive: mapped; streamed by every reader, so with O_DIRECT where the file system has it; without direct reads.
for f in aligned odd zip64 relative two; do
    answers $f.llamafile --io mmap
    for io in uring pread; do
        answers $f.llamafile --io $io --resident 0
        answers $f.llamafile --io $io --resident 1
    done
done
answers both.llamafile@a.gguf
answers both.llamafile@folder/b.gguf --resident 0
answers both.llamafile@b.gguf
status 0 "$EBB" run two.llamafile --greedy -n 16 'how do I leave ebb'
cmp -s out want || fail "a llamafile as the first word: $(cat out)"

# By name from a folder of models, listed as what it is.
mkdir m; cp two.llamafile m/Two-8B.llamafile
EBB_MODELS=$dir/m "$EBB" models | grep -q 'Two-8B.llamafile$' || fail "not listed"
EBB_MODELS=$dir/m "$EBB" run -m two-8b --greedy -n 16 'how do I leave ebb' >out 2>err </dev/null; cmp -s out want || fail "by name: $(cat err)"
rm -r m

# What cannot be.
line both.llamafile 'holds several models; name one, as in both.llamafile@a.gguf; its members are a.gguf, folder/b.gguf'
line both.llamafile@c.gguf 'has no member c.gguf; its members are a.gguf, folder/b.gguf'
line nowhere.llamafile@c.gguf 'no such file'
make_file --deflate packed.llamafile weights.gguf="$guide"
line packed.llamafile 'its member weights.gguf is compressed or encrypted'
make_file none.llamafile notes.txt=notes.txt
line none.llamafile 'is not a GGUF file but'
head -c 3000000 odd.llamafile >cut.llamafile
line cut.llamafile 'without its end'
head -c 3000000 "$guide" >short.gguf
make_file short.llamafile weights.gguf=short.gguf
line short.llamafile 'truncated: has 3000000 of'
python3 - <<'P'
import struct
f = bytearray(open("odd.llamafile", "rb").read())
entry = f.index(b"PK\1\2")
def change(name, at, form, value):
    g = bytearray(f); struct.pack_into(form, g, at, value); open(name + ".llamafile", "wb").write(g)
size, = struct.unpack_from("<I", f, entry + 24)
change("large", entry + 24, "<I", size + (1 << 30))
change("far", entry + 42, "<I", len(f) - 8)
change("beyond", entry + 42, "<I", 0xfffffff0)
change("name", entry + 28, "<H", 0xffff)
change("entry", entry, "<I", 0)
end = f.rindex(b"PK\5\6", 0, len(f) - 8)
change("list", end + 12, "<I", 0x7fffffff)
g = bytearray(open("zip64.llamafile", "rb").read())
at = g.index(b"PK\6\7")
for i, v in enumerate((0, len(g), (1 << 64) - 1, at - 1)):
    struct.pack_into("<Q", g, at + 8, v); open("locator%d.llamafile" % i, "wb").write(g)
P
line large.llamafile 'its member weights.gguf is truncated'
for f in far beyond name entry list locator0 locator1 locator2 locator3; do
    line $f.llamafile 'of the zip archive lies outside the file'
done
sha256sum -c --quiet before || fail "a llamafile was changed"
exit 0
