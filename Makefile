# SPDX-License-Identifier: Apache-2.0
# The doors to Drover. Each target installs what it needs, may be repeated, and asks nothing.

SECONDS ?= 60
PREFIX ?= /usr/local
TEST_FLAGS ?=

RELEASE = --buildtype=release
SANITIZERS = -Db_sanitize=address,undefined -Db_lundef=false

.PHONY: all run test test-full check bench fuzz coverage debug format install image clean

all:
	scripts/setup build
	scripts/configure build $(RELEASE)
	ninja -C build drover drover-agent

run: all
	build/drover serve --demo

# Every test, in the release build and under the address and undefined sanitizers. Those of the
# test cluster are skipped where it cannot be built.
test:
	scripts/setup test
	scripts/setup cluster
	scripts/configure build $(RELEASE) -Dtests=true
	scripts/configure build-asan --buildtype=debug --optimization=1 $(SANITIZERS) -Dtests=true
	ninja -C build
	ninja -C build-asan
	scripts/run-tests $(TEST_FLAGS) build-asan build

# And what is too long for every day: processes killed after each of their writes, on real clusters.
test-full:
	scripts/setup helm
	scripts/setup fleetagent
	$(MAKE) test TEST_FLAGS="$(TEST_FLAGS) --full"

# The fast part: what one runs between two edits.
check:
	scripts/setup test
	scripts/configure build $(RELEASE) -Dtests=true
	ninja -C build
	scripts/run-tests $(TEST_FLAGS) --fast build

bench:
	scripts/setup bench
	scripts/setup cluster
	scripts/configure build $(RELEASE) -Dtests=true
	ninja -C build
	scripts/run-bench build

fuzz:
	scripts/setup fuzz
	CC=clang-19 CXX=clang++-19 scripts/configure build-fuzz --buildtype=debugoptimized \
		$(SANITIZERS) -Dtests=false -Dfuzzers=true -Ddashboard=false
	ninja -C build-fuzz
	scripts/run-fuzz build-fuzz $(SECONDS)

coverage:
	scripts/setup coverage
	scripts/configure build-coverage --buildtype=debug -Db_coverage=true -Dtests=true
	ninja -C build-coverage
	scripts/run-tests $(TEST_FLAGS) build-coverage
	scripts/coverage-report build-coverage

debug:
	scripts/setup test
	scripts/configure build-debug --buildtype=debug -Dtests=true
	ninja -C build-debug

format:
	scripts/setup format
	clang-format-19 -i $$(git ls-files 'src/*.[ch]' 'tests/*.[ch]')

# The program, its manual page and what shells complete; the last two are printed by the first.
install: all
	install -D -m 0755 build/drover $(DESTDIR)$(PREFIX)/bin/drover
	ln -sf drover $(DESTDIR)$(PREFIX)/bin/kubectl-skyhook
	build/drover man > build/drover.1
	install -D -m 0644 build/drover.1 $(DESTDIR)$(PREFIX)/share/man/man1/drover.1
	build/drover completion bash > build/drover.bash
	install -D -m 0644 build/drover.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/drover
	build/drover completion zsh > build/_drover
	install -D -m 0644 build/_drover $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_drover
	build/drover completion fish > build/drover.fish
	install -D -m 0644 build/drover.fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/drover.fish

# For `docker load` or `ctr image import`; needs no container engine.
image: all
	scripts/build-image build drover build/drover-image.tar
	scripts/build-image build drover-agent build/drover-agent-image.tar

clean:
	rm -rf build build-debug build-asan build-coverage build-fuzz
