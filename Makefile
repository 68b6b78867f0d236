# One command for each thing a developer does. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := build
CARGO ?= cargo

.PHONY: help build demo test unit e2e test-guests programs fuzz lint format deps bench-overhead bench-kernels bench-predict bench-run clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

build: cargo-found ## build target/release/firsttouch
	$(CARGO) build --release

demo: cargo-found ## the whole story in under 30 s: profile a bundled program, find the defect, fix it (needs Rust and a C compiler with OpenMP, no root)
	@scripts/need-openmp
	$(CARGO) build --release
	target/release/firsttouch demo

test: ## everything: deps, lint, unit tests, test programs, end-to-end tests, tests in guests; ends with a summary
	@scripts/test

unit: cargo-found ## unit tests only
	$(CARGO) test --workspace --exclude firsttouch-e2e

programs: cargo-found ## build the programs of corpus/ and tests/programs/ into target/test-programs/
	$(CARGO) run --quiet -p firsttouch-e2e --bin build-programs

e2e: build programs ## end-to-end tests (E2E='noharm:: sigtrap' runs the module noharm and the tests whose name contains sigtrap)
	@scripts/e2e $(E2E)

test-guests: cargo-found ## tests on several NUMA nodes, in emulated guests (GUESTS='two_nodes -- lscpu' runs some of them in one)
	@scripts/test-guests $(GUESTS)

fuzz: cargo-found ## each parser of untrusted input under libFuzzer for a minute (FUZZ_SECONDS=60; not part of `make test`)
	@scripts/fuzz

lint: cargo-found ## rustfmt, clippy, clang-format, shellcheck: warnings are errors
	@scripts/lint

format: cargo-found ## format all Rust, C and C++ in place
	$(CARGO) fmt
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	scripts/source-files c | xargs -0 -r clang-format -i

deps: ## install what the tests use (apt, as root or with passwordless sudo), else say what is missing
	@scripts/deps

bench-kernels: build ## the bundled kernels beside OpenBLAS, likwid-bench, a plain loop and YASK, in turn, with intervals
	scripts/bench-kernels --rounds $(or $(ROUNDS),7)

bench-overhead: build ## the cost of profiling: bare and profiled in turn, with intervals (PAIRS=10)
	scripts/bench-overhead --pairs $(or $(PAIRS),10)

bench-predict: cargo-found ## what a prediction costs, by nodes, threads and objects
	$(CARGO) run --release --quiet -p firsttouch-predict --example cost

bench-run: build ## what `firsttouch run` costs at a program's start, over numactl (PAIRS=300)
	scripts/bench-run --pairs $(or $(PAIRS),300)

clean: cargo-found ## remove all build results
	$(CARGO) clean

.PHONY: cargo-found
cargo-found:
	@command -v $(CARGO) >/dev/null || { echo "firsttouch is built with Rust, and '$(CARGO)' is not on PATH: install it from https://rustup.rs" >&2; exit 1; }
