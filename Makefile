# ebb - see `make help`.  Variables: SAN=address,undefined|thread  DEBUG=1  COVERAGE=1  V=1  ARGS="..."
NAME    := ebb
VERSION := $(shell awk "/define EBB_VERSION_(MAJOR|MINOR|PATCH)/{v=v s \$$3; s=\".\"} END{print v}" include/ebb/version.h)
PREFIX  ?= /usr/local
# The folder of kernels: a cross compiler's name says for what it builds, any other builds for this machine.
# The compiler itself is not asked: the rules below may be about to install it.
TARGET  := $(or $(filter x86_64 aarch64,$(firstword $(subst -, ,$(lastword $(subst /, ,$(CC)))))),$(shell uname -m))
ARCH    := $(patsubst aarch64,arm,$(patsubst x86_64,x86,$(TARGET)))
CROSS   := $(if $(findstring $(TARGET)-linux-gnu-,$(notdir $(CC))),$(TARGET)-linux-gnu-)
OBJCOPY := $(CROSS)objcopy
STRIP   := $(CROSS)strip
LD      := $(CROSS)ld
Q       := $(if $(V),,@)
comma   := ,

# One object tree per flag set: `make test SAN=thread` never mixes with a release build.
VARIANT := $(if $(COVERAGE),coverage,$(if $(SAN),$(subst $(comma),-,$(SAN)),$(if $(DEBUG),debug,release)))
B       := build/$(VARIANT)

WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion \
          -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wundef -Wformat=2 \
          -Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=int-conversion
OPT    := $(if $(COVERAGE),-O0 -g,$(if $(SAN),-O1 -g,$(if $(DEBUG),-Og -g3,-O2 -g -DNDEBUG)))
SANF   := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
          $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=pointer-overflow)
# What reads bytes from outside, and is to be reached by tests/fuzz/seeds: `make coverage` counts its lines.
READERS := engine/gguf engine/tokenizer engine/grammar core/net chat/template chat/schema chat/remote chat/pull chat/serve chat/store tui/text tui/edit tui/term
$(if $(COVERAGE),$(foreach r,$(READERS),$(eval $$(B)/$r/%.o: COVF := --coverage)))
$(if $(COVERAGE),$(eval LDFLAGS += --coverage))
# Hardening, but not where a sanitizer looks at the same things.
# A source tree's path is in no object, so two trees of one commit make the same bytes.
BRANCH  := $(if $(filter x86_64,$(TARGET)),-fcf-protection,$(if $(filter aarch64,$(TARGET)),-mbranch-protection=standard))
HARDEN  := -fstack-protector-strong -fstack-clash-protection $(BRANCH) $(if $(DEBUG),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
SAME    := "-ffile-prefix-map=$(CURDIR)=."
# Fused multiply-adds only where the source says so: the bits must not depend on the compiler's mood.
# Only what include/ebb/*.h declares is seen from outside the library; the same objects serve programs and libebb.so.
CFLAGS += -std=c11 -pthread -fPIC -fvisibility=hidden -ffp-contract=off $(OPT) $(WARN) $(if $(SAN)$(COVERAGE),,$(HARDEN)) $(SANF) $(SAME)
CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude
LDFLAGS += -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
LIB_LDLIBS := -lutf8proc -lpcre2-8 -luring -lm
LDLIBS += -lncursesw -ltinfo -lutf8proc -lsqlite3 -lpcre2-8 -ljansson -lmd4c -luring -ldl -lm

# The roots.  A root sees only itself, the roots below it and include/: the include path is the
# dependency rule.  chat, tui and cli see the engine through include/ebb/ alone.
$(B)/core/%.o:   INC := -Isrc/core
$(B)/engine/%.o: INC := -Isrc/core -Isrc/engine
$(B)/chat/%.o:   INC := -Isrc/core -Isrc/chat
$(B)/tui/%.o:    INC := -Isrc/core -Isrc/chat -Isrc/tui
$(B)/cli/%.o:    INC := -Isrc/core -Isrc/chat -Isrc/tui -Isrc/cli
$(B)/tests/%.o:  INC := -Isrc/core -Isrc/engine -Isrc/chat -Isrc/tui -Isrc/cli -Itests

# Kernel files carry their own ISA flags; everything else stays baseline, dispatch is at run time.
# No result depends on errno or on floating-point traps, and loops without them become vectors.
$(B)/engine/kernels/%.o:            OPT += -O3 -fno-math-errno -fno-trapping-math
# The fuzzers are after parsers; clang takes half an hour to instrument a kernel.
$(if $(findstring fuzzer,$(SAN)),$(eval $$(B)/engine/kernels/x86/%.o: SANF :=))
$(B)/engine/kernels/x86/avx2%.o:   ISA := -mavx2 -mfma -mf16c -mbmi2
$(B)/engine/kernels/x86/avxvnni%.o: ISA := -mavx2 -mfma -mf16c -mbmi2 -mavxvnni
$(B)/engine/kernels/x86/avx512%.o: ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma -mf16c -mbmi2 \
                                           -mprefer-vector-width=512
$(B)/engine/kernels/x86/amx%.o:    ISA := -mamx-tile -mamx-int8 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma \
                                           -mf16c -mbmi2 -mprefer-vector-width=512
$(B)/engine/kernels/arm/%.o:       ISA := -march=armv8.2-a+dotprod

ALL_SRC := $(filter-out src/cli/main.c src/engine/kernels/x86/% src/engine/kernels/arm/%,$(sort $(shell find src -name '*.c'))) \
           $(wildcard src/engine/kernels/$(ARCH)/*.c)
# The products of AVX2 are compiled a second time, with another dot product (avx2_dot.h).
VNNI_OBJ := $(if $(filter x86,$(ARCH)),$(addprefix $(B)/engine/kernels/x86/avxvnni_,gemm.o gemv.o gemv_grid.o gemv_low.o))
ALL_OBJ := $(patsubst src/%.c,$(B)/%.o,$(ALL_SRC)) $(VNNI_OBJ)
TESTS   := $(patsubst %.c,$(B)/%,$(sort $(shell find tests -name 'test_*.c')))
SCRIPTS := $(sort $(shell find tests -name 'test_*.sh'))
BENCHES := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/bench/bench_*.c)))
CHECKKERN := $(B)/tests/bench/checkkern
FUZZERS := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

all: $(B)/$(NAME)                              ## build the program (default)

$(B)/$(NAME): $(B)/cli/main.o $(B)/all.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pie -o $@ $^ $(LDLIBS)
$(B)/all.a: $(ALL_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The library: the engine and what it stands on, in one object whose hidden symbols are its own affair.
SONAME  := libebb.so.$(basename $(VERSION))
# What starts other processes, and what encrypts, is the program's; the library never does.
PROCESS_OBJ := $(addprefix $(B)/core/os/,broker_serve.o child.o spawn.o)
ENGINE_OBJ := $(filter-out $(B)/core/net/% $(B)/core/seal/% $(PROCESS_OBJ) $(B)/engine/plan/ollama_%,$(filter $(B)/core/% $(B)/engine/%,$(ALL_OBJ)))
lib: $(B)/lib/libebb.a $(B)/lib/$(SONAME)      ## libebb.a and libebb.so: the engine for other programs
$(B)/lib/libebb.a: $(ENGINE_OBJ)
	$(Q)mkdir -p $(@D) && $(LD) -r -o $(@D)/ebb.o $^ && $(OBJCOPY) --localize-hidden $(@D)/ebb.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(@D)/ebb.o && rm $(@D)/ebb.o
$(B)/lib/$(SONAME): $(ENGINE_OBJ)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) $(if $(SAN),,-Wl,-z,defs) -Wl,--as-needed -o $@ $^ $(LIB_LDLIBS)
	$(Q)ln -sf $(SONAME) $(@D)/libebb.so

$(B)/chat/models/guide_data.o: models/guide.gguf
$(B)/%.o: src/%.c $(B)/flags | build/deps-build
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(INC) $(CFLAGS) $(COVF) $(ISA) -MMD -MP -c $< -o $@
$(VNNI_OBJ): $(B)/engine/kernels/x86/avxvnni_%.o: src/engine/kernels/x86/avx2_%.c $(B)/flags | build/deps-build
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(INC) $(CFLAGS) $(ISA) -MMD -MP -c $< -o $@
# The built-in themes are part of the object.
$(B)/tui/term/theme.o: $(wildcard themes/*.theme)
# So are the system prompts.
$(B)/chat/models/suggestions.o: models/suggestions.txt
$(B)/chat/prompt/system_prompts.o: $(wildcard prompts/*.txt)
$(B)/chat/models/guide_data.o: models/guide.gguf
# A test's own malloc and free stand in for libc's only if libc can see them.
$(B)/tests/%.o: tests/%.c $(B)/flags | build/deps-test
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(INC) $(CFLAGS) -fvisibility=default -MMD -MP -c $< -o $@
# C files of a test folder that are no tests are linked into each test of it and of its rooms, before the
# library: a fake of a room's functions stands in for the room.
helpers = $(foreach d,$(1) $(patsubst %/,%,$(dir $(1))),$(patsubst %.c,$(B)/%.o,$(filter-out $(d)/test_% $(d)/bench_% $(d)/fuzz_% $(d)/checkkern.c $(FUZZED),$(wildcard $(d)/*.c))))
# With clang's fuzzer its main stands where else the seeds are replayed.
FUZZED := $(if $(findstring fuzzer,$(SAN)),tests/fuzz/replay.c)
# What any test may use stands in tests/support.
$(B)/tests/libsupport.a: $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c))
	$(Q)rm -f $@ && $(AR) rcs $@ $^
# An engine in a program of your own: sees include/ebb alone.
$(B)/examples/%: examples/%.c $(B)/lib/libebb.a $(B)/flags
	$(Q)mkdir -p $(@D) && $(CC) -Iinclude $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(B)/lib/libebb.a $(LIB_LDLIBS)
.SECONDEXPANSION:
$(B)/tests/%: $(B)/tests/%.o $$(call helpers,tests/$$(*D)) $(B)/tests/libsupport.a $(B)/all.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)
# Time stands still for the engine there.
$(B)/tests/engine/memory/test_reclaim_steps: LDFLAGS += -Wl,--wrap=ebb_clock_ns

# What the build needs from the system; the stamp is made anew when the list changes.
build/deps-%: tools/deps.sh
	$(Q)mkdir -p build && echo '*' > build/.gitignore && sh tools/deps.sh $* && touch $@

# Rebuild when flags change; build/ ignores itself.
$(B)/flags: FORCE
	$(Q)mkdir -p $(@D) && echo '*' > build/.gitignore
	$(Q)echo '$(CC) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CPPFLAGS) $(CFLAGS)' > $@

run: all                                       ## build it and chat: make run ARGS="-m model.gguf"
	$(Q)$(B)/$(NAME) $(ARGS)
test: $(TESTS) all lib $(CHECKKERN) $(FUZZERS) $(BENCHES) $(B)/examples/ask  ## all tests; needs no model; benches and fuzzers are built
	$(Q)EBB=$(B)/$(NAME) sh tests/run.sh $(TESTS) $(SCRIPTS)
check:                                         ## the tests, plain and under the sanitizers: before a merge
	$(MAKE) test
	$(MAKE) test SAN=address,undefined
	$(MAKE) test SAN=thread
check-long: $(B)/tests/engine/prefix_cache/test_kv_random $(B)/tests/engine/memory/fuzz_pressure $(B)/tests/engine/speculate/test_speculate_random $(B)/tests/engine/speculate/test_speculate_matrix $(B)/tests/faults/test_power_cut $(B)/tests/engine/gguf/test_gguf_opens $(B)/$(NAME)  ## 1,000,000 damaged headers; 10,000 random operations on the KV cache, as many of drafting with each kind of drafter, 1,000 turns of two programs; 10,000 power cuts; 100,000 requests and 1,000 broken clients; memory taken and given, 100 rounds
	$(Q)sh tests/engine/memory/pressure.sh $(B)/tests/engine/memory/fuzz_pressure $(or $(ROUNDS),100)
	$(Q)EBB_KV_OPS=$(or $(ARGS),1250) $<
	$(Q)EBB_SPECULATE_OPS=$(or $(ARGS),2000) $(B)/tests/engine/speculate/test_speculate_random
	$(Q)EBB_SPECULATE_SEEDS=20 $(B)/tests/engine/speculate/test_speculate_matrix
	$(Q)EBB_GGUF_OPENS=1000000 sh tests/run.sh $(B)/tests/engine/gguf/test_gguf_opens
	$(Q)EBB_POWER_CUTS=10000 sh tests/run.sh $(B)/tests/faults/test_power_cut
	$(Q)sh tests/faults/serve_flood.sh $(B)/$(NAME) 100000 1000
soak: $(B)/tests/faults/test_soak              ## everything at once, for ARGS seconds: make soak ARGS=3600
	$(Q)EBB_TEST_LIMIT_S=$$(($(or $(ARGS),600) + 3600)) EBB_SOAK_S=$(or $(ARGS),600) sh tests/run.sh $<
# malloc is replaced, but not one that a test brings along (ebb_alloc.h); registers are exact at each access, as the
# handler of SIGBUS needs them.  In test_confine a program is refused to start, which valgrind does not survive.
VALGRIND := valgrind -q --error-exitcode=99 --fair-sched=yes --max-stackframe=8388608 \
    --vex-iropt-register-updates=allregs-at-mem-access --soname-synonyms=somalloc=nouserintercepts \
    --suppressions=tests/valgrind.supp
valgrind: $(TESTS) all                         ## the tests in C under valgrind (hours); ARGS=build/release/tests/core/base/test_utf8: that one
	$(Q)EBB=$(B)/$(NAME) EBB_RUN="$(VALGRIND)" EBB_TEST_LIMIT_S=$${EBB_TEST_LIMIT_S:-7200} \
	    sh tests/run.sh $(or $(ARGS),$(filter-out %/test_confine,$(TESTS)))
# clang-tidy believes what is asserted, so it sees a debug build.  Leaks are the address sanitizer's; gcc 12's analyzer
# knows neither what an argument keeps nor what a loop has filled.
analyze:                                       ## what clang-tidy and gcc's analyzer find in src/ (half an hour)
	$(Q)$(MAKE) -k DEBUG=1 B=build/tidy CC="sh tools/tidy.sh" AR=true build/tidy/all.a build/tidy/cli/main.o; found=$$?; \
	$(MAKE) -k B=build/analyzer CC="gcc -fanalyzer -Werror -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value" \
	    build/analyzer/all.a build/analyzer/cli/main.o && exit $$found
ARM_TESTS := $(patsubst %.c,%,$(wildcard tests/engine/kernels/test_*.c)) tests/core/os/test_pool
check-arm: all                                 ## the kernels for AArch64 under an emulator, where cross compiler and emulator are installed
	$(Q)EBB=$(B)/$(NAME) sh tests/arm.sh $(ARM_TESTS) $(ARGS)
fuzz:                                          ## strange bytes to every parser, with clang's fuzzer: make fuzz ARGS=60 (seconds for each)
	$(Q)$(MAKE) CC=clang SAN=fuzzer-no-link,address,undefined run-fuzzers
$(if $(FUZZED),$(eval $$(FUZZERS): LDFLAGS += -fsanitize=fuzzer))
# A hub and a server of engines are played in libcurl's place (tests/fuzz/fake_curl.h).
$(FUZZERS): LDFLAGS += -Wl,--wrap=ebb_curl_load
$(B)/tests/fuzz/fuzz_hub: LDFLAGS += -Wl,--wrap=nanosleep
$(B)/tests/fuzz/fuzz_model: LDFLAGS += -Wl,--wrap=ebb_psi_open
$(B)/tests/fuzz/fuzz_server: LDFLAGS += -Wl,--wrap=ebb_child_start -Wl,--wrap=ebb_child_end
run-fuzzers: $(FUZZERS)
	$(Q)sh tests/fuzz/run_fuzzers.sh $(or $(ARGS),60) $(FUZZERS)
coverage:                                      ## how many lines of each reader tests/fuzz/seeds reach, by gcov; ARGS=-v names the others
	$(Q)$(MAKE) COVERAGE=1 count-lines
count-lines: $(FUZZERS)
	$(Q)sh tests/fuzz/coverage.sh $(B) $(ARGS)
bench: $(BENCHES)                              ## every kernel with its speed and its share of the machine's peak
	$(Q)for b in $(BENCHES); do $$b $(ARGS) || [ $$? -eq 2 ] || exit 1; done    # 2: it wants a model, and says so
checkkern: $(CHECKKERN)                        ## check any kernel by name: make checkkern ARGS="--only q4_K --isa avx512 --bench"
	$(Q)$(CHECKKERN) $(ARGS)
screenshot: all                                ## draw docs/*.svg anew from docs/screens/*.txt (tmux)
	$(Q)sh tools/deps.sh screenshot
	$(Q)for s in docs/screens/*.txt; do n=$${s##*/}; EBB_MODELS= python3 tools/screenshot.py $(B)/$(NAME) $$s docs/$${n%.txt}.svg || exit 1; done
guide:                                         ## train the embedded model again (up to two hours)
	$(Q)sh tools/deps.sh guide && /usr/bin/python3 models/train.py $(ARGS)
guide-check: all                               ## ask it the held-out questions: the score
	$(Q)python3 models/check.py --ebb $(B)/$(NAME) $(ARGS)
LIBDIR   ?= $(PREFIX)/lib
HEADERS := $(sort $(wildcard include/ebb/*.h))   # not experimental/: for ebb's own tools
install: all lib                               ## DESTDIR, PREFIX and LIBDIR are honoured
	install -Dm755 $(B)/$(NAME) $(DESTDIR)$(PREFIX)/bin/$(NAME)
	install -Dm644 docs/$(NAME).1 $(DESTDIR)$(PREFIX)/share/man/man1/$(NAME).1
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(B)/$(NAME) completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$(NAME)
	$(B)/$(NAME) completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$(NAME)
	$(B)/$(NAME) completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$(NAME).fish
	install -Dm644 tools/$(NAME).socket $(DESTDIR)$(PREFIX)/lib/systemd/user/$(NAME).socket
	sed 's|@PREFIX@|$(PREFIX)|' tools/$(NAME).service.in > $(DESTDIR)$(PREFIX)/lib/systemd/user/$(NAME).service
	install -d $(DESTDIR)$(PREFIX)/include/ebb $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/ebb
	install -m644 $(B)/lib/libebb.a $(B)/lib/$(SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libebb.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIB_LDLIBS)|' tools/ebb.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/ebb.pc
	$(STRIP) $(DESTDIR)$(PREFIX)/bin/$(NAME)
	$(STRIP) --strip-unneeded $(DESTDIR)$(LIBDIR)/$(SONAME)
	$(STRIP) --strip-debug --enable-deterministic-archives $(DESTDIR)$(LIBDIR)/libebb.a
# Of folders only that which is ebb's alone; nothing in a home: conversations, models and settings stay.
uninstall:                                     ## remove what `make install` put there: with the same DESTDIR, PREFIX and LIBDIR
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/$(NAME) share/man/man1/$(NAME).1 share/bash-completion/completions/$(NAME) \
	    share/zsh/site-functions/_$(NAME) share/fish/vendor_completions.d/$(NAME).fish \
	    lib/systemd/user/$(NAME).socket lib/systemd/user/$(NAME).service $(HEADERS))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libebb.a $(SONAME) libebb.so pkgconfig/ebb.pc)
	[ ! -d $(DESTDIR)$(PREFIX)/include/ebb ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/include/ebb
# The same bytes each time: names in order, the time of the package's version, nobody's name.
DIST := $(NAME)-$(VERSION)
dist: build/$(DIST).tar.gz                     ## the sources as a tarball in build/, the same bytes each time
build/$(DIST).tar.gz: FORCE
	$(Q)mkdir -p build && { git ls-files 2>/dev/null || find . -path ./build -prune -o -type f -printf '%P\n'; } | grep -v '^debian/' | LC_ALL=C sort > build/dist.files
	$(Q)tar --create --format=ustar --no-recursion --files-from=build/dist.files --transform='s|^|$(DIST)/|' --owner=0 --group=0 --numeric-owner \
	    --mode=u+rw,go+r-w,a+X --mtime="$$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" | gzip -9n > $@
deb: dist                                      ## Debian packages in build/deb: ebb, libebb0.1, libebb-dev
	$(Q)sh tools/deps.sh deb && rm -rf build/deb && mkdir -p build/deb
	$(Q)cp build/$(DIST).tar.gz build/deb/$(NAME)_$(VERSION).orig.tar.gz && tar -xzf build/$(DIST).tar.gz -C build/deb
	$(Q)cp -r debian build/deb/$(DIST)
	$(Q)[ -z "$$DEBEMAIL" ] || sed -i "s|^Maintainer: .*|Maintainer: $${DEBFULLNAME:-$$DEBEMAIL} <$$DEBEMAIL>|" build/deb/$(DIST)/debian/control
	$(Q)cd build/deb/$(DIST) && dpkg-buildpackage --no-sign
	$(Q)ls build/deb/*.deb
clean:                                         ## remove build/
	rm -rf build
help:                                          ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

-include $(shell find build -path build/deb -prune -o -name '*.d' -print 2>/dev/null)
.DELETE_ON_ERROR:
.PHONY: checkkern all lib dist deb run test check check-long valgrind analyze soak check-arm fuzz run-fuzzers coverage count-lines bench screenshot guide guide-check install uninstall clean help FORCE
.SECONDARY:
