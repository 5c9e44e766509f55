# SPDX-License-Identifier: Apache-2.0
# The doors to Drover. Each target installs what it needs, may be repeated, and asks nothing.

SECONDS ?= 60
PREFIX ?= /usr/local
TEST_FLAGS ?=

.PHONY: all run test check bench fuzz coverage debug format image install clean

all: build/build.ninja
	ninja -C build

build/build.ninja:
	scripts/setup build
	scripts/configure build --buildtype=release

build-debug/build.ninja:
	scripts/setup test
	scripts/configure build-debug --buildtype=debug

build-asan/build.ninja:
	scripts/setup test
	scripts/configure build-asan --buildtype=debug --optimization=1 -Db_sanitize=address,undefined -Db_lundef=false

build-coverage/build.ninja:
	scripts/setup test
	scripts/configure build-coverage --buildtype=debug -Db_coverage=true

build-fuzz/build.ninja:
	scripts/setup fuzz
	CC=clang-19 CXX=clang++-19 scripts/configure build-fuzz --buildtype=debugoptimized -Dfuzzers=true -Dtests=false -Db_sanitize=address,undefined -Db_lundef=false

run: all
	build/drover help

# Every test, in the release build and under the address and undefined sanitizers.
test: build/build.ninja build-asan/build.ninja
	scripts/setup test
	scripts/configure build -Dtests=true
	ninja -C build
	ninja -C build-asan
	scripts/run-tests $(TEST_FLAGS) build-asan build

# The fast part: what one runs between two edits.
check: build/build.ninja
	scripts/setup test
	scripts/configure build -Dtests=true
	ninja -C build
	scripts/run-tests $(TEST_FLAGS) --fast build

bench: build/build.ninja
	scripts/setup test
	scripts/configure build -Dtests=true
	ninja -C build
	scripts/run-bench build

fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz
	scripts/run-fuzz build-fuzz $(SECONDS)

coverage: build-coverage/build.ninja
	ninja -C build-coverage
	scripts/run-tests $(TEST_FLAGS) build-coverage
	scripts/coverage-report build-coverage

debug: build-debug/build.ninja
	ninja -C build-debug

install: all
	install -D -m 0755 build/drover $(DESTDIR)$(PREFIX)/bin/drover

clean:
	rm -rf build build-debug build-asan build-coverage build-fuzz
