#!/bin/sh
# The installed library serves a program that knows nothing but `pkg-config ebb`: in C and C++, shared and static.
# It exports what its headers declare and nothing else, and brings few libraries along.
set -eu
case $EBB in
build/release/*) ;;
*) echo "the library is installed from the release build"; exit 77 ;;
esac
for tool in pkg-config c++ nm objdump; do
    command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
[ -f build/release/lib/libebb.a ] || { echo "make lib builds it"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }

root=$PWD
make -s install DESTDIR="$dir/root" PREFIX=/usr >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cp examples/ask.c models/guide.gguf "$dir"
cd "$dir"
export PKG_CONFIG_SYSROOT_DIR="$dir/root" PKG_CONFIG_LIBDIR="$dir/root/usr/lib/pkgconfig:$(pkg-config --variable pc_path pkg-config)"
flags=$(pkg-config --cflags --libs ebb)
[ "$(pkg-config --modversion ebb)" = "$(awk '/define EBB_VERSION_(MAJOR|MINOR|PATCH)/ { v = v s $3; s = "." } END { print v }' \
    root/usr/include/ebb/version.h)" ] || fail "ebb.pc has another version than version.h"

# shellcheck disable=SC2086
${CC:-cc} -Wall -Wextra -Werror ask.c $flags -o ask
# shellcheck disable=SC2086
${CC:-cc} ask.c $(pkg-config --cflags ebb) root/usr/lib/libebb.a $(pkg-config --static --libs-only-l ebb | sed 's/-lebb//') -pthread -o ask-static
cat >version.cc <<'END'
#include <ebb/engine.h>
#include <ebb/model.h>
#include <ebb/session.h>
#include <ebb/stats.h>
#include <ebb/status.h>
#include <ebb/version.h>
#include <cstdio>
#include <cstring>

int main()
{
    ebb_engine_opts opts = {};
    ebb_model *model = nullptr;
    ebb_engine *engine = nullptr;
    ebb_session *session = nullptr;
    ebb_sampler *sampler = nullptr;
    ebb_token ids[64];
    ebb_error err;
    ebb_stats stats;
    size_t n = 0;
    bool ok;

    opts.no_kv_cache = true;
    ok = std::strcmp(ebb_version(), EBB_VERSION) == 0 && ebb_model_open("guide.gguf", &model, &err) == EBB_OK &&
         ebb_engine_open(model, &opts, nullptr, nullptr, &engine, &err) == EBB_OK && ebb_session_new(engine, &session, &err) == EBB_OK &&
         ebb_model_tokenize(model, "The budget", 10, EBB_TOK_BOS, ids, 64, &n, &err) == EBB_OK &&
         ebb_session_sync(session, ids, n, nullptr, &err) == EBB_OK &&
         (sampler = ebb_sampler_new(nullptr, ebb_model_get_info(model)->n_vocab)) && ebb_session_sample(session, sampler) >= 0;
    if (ok) {
        ebb_engine_stats(engine, &stats);
        ok = stats.memory_event.code == EBB_MEMORY_PLANNED && stats.n_passes > 0;
    }
    ebb_sampler_free(sampler);
    ebb_session_free(session);
    ebb_engine_close(engine);
    ebb_model_close(model);
    std::puts(ok ? ebb_version() : err.msg);
    return ok ? 0 : 1;
}
END
# shellcheck disable=SC2086
c++ -Wall -Wextra -Wpedantic -Werror version.cc $flags -o version

export LD_LIBRARY_PATH="$dir/root/usr/lib"
said=$(./ask guide.gguf "The budget" 12)
[ -n "$said" ] || fail "it said nothing"
[ "$said" = "$(./ask-static guide.gguf "The budget" 12)" ] || fail "linked with libebb.a, it said something else"
[ "$said" = "$("$root/build/release/examples/ask" guide.gguf "The budget" 12)" ] || fail "in the tree, it said something else"
./version >/dev/null || fail "in C++: $(./version)"

needed=$(objdump -p root/usr/lib/libebb.so | sed -n 's/ *NEEDED *//p' | grep -vE '^(lib(m|c|pcre2-8|utf8proc|uring)|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "libebb.so needs $needed"
objdump -p root/usr/lib/libebb.so | grep -q "SONAME *$(basename root/usr/lib/libebb.so.*)" || fail "another soname than its name"

# What is exported is declared, and the other way round.
nm -D --defined-only root/usr/lib/libebb.so | awk '{ print $3 }' | sort >exported
nm -g --defined-only root/usr/lib/libebb.a | awk '$3 { print $3 }' | sort >static
for h in root/usr/include/ebb/*.h; do ${CC:-cc} -fpreprocessed -dD -E -P "$h"; done |
    grep -v '^#\|typedef\|^static inline\|__VA_ARGS__' | tr '\n' ' ' | grep -oE '\bebb_[a-z_0-9]+ *\(' | tr -d ' (' | sort -u >declared
cmp -s exported declared || fail "exported (<) and declared (>) differ: $(diff exported declared || true)"
cmp -s exported static || fail "libebb.so (<) and libebb.a (>) export different functions: $(diff exported static || true)"
# The engine never prints, exits or aborts, and nothing of it runs before its user calls it.
ends=$(nm -u root/usr/lib/libebb.a | grep -owE 'abort|_*exit|quick_exit|std(out|err)|perror|v?printf|puts|putchar|__assert_fail' || true)
[ -z "$ends" ] || fail "libebb.a calls or writes to $ends"
objdump -h root/usr/lib/libebb.a | grep -E '\.(init_array|ctors)' && fail "libebb.a has a constructor"
[ ! -e root/usr/include/ebb/experimental ] || fail "experimental headers are installed"
nm root/usr/bin/ebb 2>/dev/null | grep -q . && fail "what is installed is not stripped"
exit 0
