# The commands of the house; `make help` lists them. CI runs `make check`, `make test`, `make fuzz` and a part of
# `make test-gpu` (.ci/run).

SHELL := /bin/sh
.DEFAULT_GOAL := help

# rustup puts cargo where a shell that was already open does not look.
CARGO_HOME ?= $(or $(HOME),/root)/.cargo
export CARGO_HOME
export PATH := $(CARGO_HOME)/bin:$(PATH)

# A suite that hangs must fail: seconds until it is ended, and 10 more until it is killed.
LIMIT := timeout --kill-after=10
# Builds have limits of their own, which a loaded machine keeps too.
BUILD_SECONDS ?= 2400
CHECK_SECONDS ?= 2400
TEST_SECONDS ?= 900
FULL_SECONDS ?= 3600
FUZZ_SECONDS ?= 600
PYTHON_SECONDS ?= 420

# How long `make soak` takes, and 10 more at the most until it is ended.
SOAK_MINUTES ?= 30

.PHONY: help
help: ## List these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1#\2/p' Makefile | while IFS='#' read -r name text; do printf '%-16s %s\n' "$$name" "$$text"; done

.PHONY: demo
# The same build as the tests': a newcomer waits once for both.
demo: ## See it work on this machine: two sides, a bad network between them
	scripts/setup --demo
	cargo run --locked --package wayferry-lab -- demo $(ARGS)

.PHONY: test
test: page ## Run all tests but the heavy ones
	scripts/setup
	$(LIMIT) $(BUILD_SECONDS) cargo test --workspace --locked --no-run
	$(LIMIT) $(TEST_SECONDS) cargo test --workspace --locked
	$(LIMIT) $(BUILD_SECONDS) cargo test --locked --manifest-path fuzz/Cargo.toml
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory test-sdist

.PHONY: build-python
build-python: ## Build the Python package's native module, in place
	scripts/setup --python >/dev/null
	$(LIMIT) $(BUILD_SECONDS) scripts/build-python

.PHONY: test-python
test-python: build-python ## Run the Python package's tests (PYTHON=… chooses the interpreter, ARGS=… the tests)
	WAYFERRY_PEERS=$$PWD/$$($(LIMIT) $(BUILD_SECONDS) scripts/build-peers) \
	    $(LIMIT) $(PYTHON_SECONDS) scripts/test-python $(ARGS)

.PHONY: test-sdist
test-sdist: ## Run aioquic's own tests and programs with the Python package as it installs from its sdist
	TESTS_PYTHON=$$PWD/$$(scripts/setup --python) $(LIMIT) $(BUILD_SECONDS) scripts/build-wheels --sdist

.PHONY: test-peers
test-peers: build-python ## Try the Python package with every peer that can be built (PEERS=required: fail if one is missing)
	WAYFERRY_PEERS=$$PWD/$$($(LIMIT) $(BUILD_SECONDS) scripts/build-peers --all) \
	    $(LIMIT) $(PYTHON_SECONDS) scripts/test-python -rs tests/test_interop.py tests/test_interop_web.py \
	    tests/test_interop_programs.py tests/test_http3_interop.py tests/test_http3_programs.py \
	    tests/test_browser.py tests/test_http3_browser.py

.PHONY: check-python
check-python: build-python ## Format, lints, types of the Python package
	$(LIMIT) $(CHECK_SECONDS) scripts/check-python

# Relocations take 350 kB, or, packed, one. A static program does them by itself, with glibc from 2.36 on.
PACKED = $(shell getconf GNU_LIBC_VERSION 2>/dev/null | \
    awk -F '[ .]' '$$2 * 1000 + $$3 >= 2036 { print "-C link-arg=-Wl,-z,pack-relative-relocs" }')

.PHONY: page
page: ## Build the page for browsers, which the program has in it from its next build on
	scripts/setup --page
	$(LIMIT) $(BUILD_SECONDS) scripts/build-page

.PHONY: static
static: page ## Build target/static/wayferry, which needs nothing but a kernel (for --install-remote)
	scripts/setup --demo
	host=$$(rustc -vV | sed -n 's/^host: //p') && \
	RUSTFLAGS='-C target-feature=+crt-static $(PACKED)' CARGO_PROFILE_RELEASE_STRIP=symbols \
	CARGO_PROFILE_RELEASE_DEBUG=false \
	    cargo build --release --locked --package wayferry --no-default-features --features video --target "$$host" && \
	mkdir -p target/static && cp "target/$$host/release/wayferry" target/static/wayferry

.PHONY: gpu-reader
gpu-reader: ## Build target/static/wayferry-gpu-reader, which opens libEGL for a static wayferry beside it
	CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false \
	    cargo build --release --locked --package wayferry-gpu --features egl --bin wayferry-gpu-reader
	mkdir -p target/static && cp target/release/wayferry-gpu-reader target/static/wayferry-gpu-reader

.PHONY: packages
packages: page ## Build tarballs, .deb and .rpm for x86-64 and AArch64, in target/packages
	PACKED='$(PACKED)' $(LIMIT) $(BUILD_SECONDS) scripts/packages

.PHONY: test-packages
test-packages: ## Install the .deb in bare Debian systems, use it there, and remove it (as root)
	$(LIMIT) $(FULL_SECONDS) scripts/test-packages $(ARGS)

.PHONY: test-full
test-full: page ## Run all tests, with slow and heavy programs too
	scripts/setup --full
	$(LIMIT) $(BUILD_SECONDS) scripts/check-page
	$(LIMIT) $(BUILD_SECONDS) $(MAKE) --no-print-directory static
	$(LIMIT) $(BUILD_SECONDS) cargo test --workspace --locked --no-run
	$(LIMIT) $(FULL_SECONDS) cargo test --workspace --locked -- --include-ignored
	$(LIMIT) $(FULL_SECONDS) scripts/fuzz-smoke 60
	$(LIMIT) $(FULL_SECONDS) scripts/test-wlcs
	$(LIMIT) $(FULL_SECONDS) scripts/test-gpu
	$(LIMIT) $(FULL_SECONDS) scripts/test-packages
	$(LIMIT) $(BUILD_SECONDS) cargo clippy --package wayferry --package wayferry-wayland --no-default-features \
	    --all-targets --locked -- -D warnings
	$(LIMIT) $(BUILD_SECONDS) cargo test --package wayferry-audio --features opus --locked
	$(LIMIT) $(BUILD_SECONDS) cargo clippy --package wayferry-sound --features alsa --all-targets --locked -- -D warnings
	$(LIMIT) $(BUILD_SECONDS) cargo test --package wayferry-sound --features alsa --locked
	$(LIMIT) $(BUILD_SECONDS) cargo test --package wayferry-video --features ffmpeg --locked
	$(LIMIT) $(BUILD_SECONDS) cargo test --package wayferry-video --features gpl --locked

.PHONY: test-gpu
test-gpu: ## Test GPU buffers, in a virtual machine (GPU_TESTS=required: fail if there can be none)
	$(LIMIT) $(BUILD_SECONDS) scripts/test-gpu $(ARGS)

.PHONY: check
check: ## Format, lints, documentation, layers, licences, and what a browser can use as WebAssembly
	scripts/setup
	$(LIMIT) $(CHECK_SECONDS) $(MAKE) --no-print-directory checks
	$(MAKE) --no-print-directory check-python

.PHONY: quick
quick: ## What a change breaks first: format, lints, and unit tests of the crates that have changed
	scripts/quick

.PHONY: checks
checks:
	cargo fmt --check
	cargo fmt --check --manifest-path python/peers/Cargo.toml
	scripts/check-tree
	scripts/check-units
	scripts/check-layers
	scripts/check-circles
	scripts/check-licences
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
	scripts/test-wasm
	scripts/check-web

.PHONY: fuzz
fuzz: ## Run every fuzz target on its seeds, or look for more (SECONDS=… for each)
	scripts/setup
	$(LIMIT) $(FUZZ_SECONDS) scripts/fuzz-smoke $(or $(SECONDS),0)

.PHONY: bench
bench: ## Measure window mode over emulated links
	scripts/setup --demo
	cargo build --release --locked --package wayferry --package wayferry-lab
	target/release/wayferry-lab bench windows $(ARGS)

.PHONY: bench-hol
bench-hol: ## Measure sound, keys and pictures over TCP, over one QUIC stream and over many (needs /dev/net/tun)
	scripts/setup
	cargo build --release --locked --package wayferry-lab
	target/release/wayferry-lab bench hol $(ARGS)

.PHONY: bench-sound
bench-sound: ## Measure sound beside a window that fills the link: how much is made up, and how late it is
	scripts/setup
	cargo build --release --locked --package wayferry-lab
	target/release/wayferry-lab bench sound $(ARGS)

.PHONY: bench-python
# aiopquic, which ours is compared with, has no builds for Pythons before 3.12.
bench-python: ## Measure the Python package beside others (PYTHON=… chooses the interpreter, ARGS=… e.g. --list)
	scripts/setup --python >/dev/null
	scripts/build-python --release
	cargo build --release --locked --package wayferry-net --no-default-features --example endpoint_bench
	"$$(scripts/setup --python)" python/benches/bench.py $(ARGS)

.PHONY: wheels
wheels: ## Build the Python package's wheels (x86-64, AArch64) and sdist, and check them
	TESTS_PYTHON=$$PWD/$$(scripts/setup --python) scripts/build-wheels $(ARGS)

.PHONY: soak
soak: page ## Show a session in two browsers for long, and see that memory stays flat (SOAK_MINUTES=30)
	scripts/setup
	$(LIMIT) $(BUILD_SECONDS) cargo test --package wayferry --test e2e --locked --no-run
	SOAK_MINUTES=$(SOAK_MINUTES) $(LIMIT) $$((($(SOAK_MINUTES) + 10) * 60)) \
	    cargo test --package wayferry --test e2e --locked -- --include-ignored --nocapture soak::

.PHONY: clean
clean: ## Remove what was built
	cargo clean
