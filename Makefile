# One command for each thing a developer does. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := build
CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: help build library demo check test unit e2e corpus-sources corpus-agreement whole-corpus noharm-all test-bindings test-guests programs fuzz lint format deps package deny bench-overhead truth-campaign bench-kernels bench-library bench-predict bench-scale bench-run bench-top install uninstall clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

build: cargo-found library ## build target/release/firsttouch, and libfirsttouch in target/library
	$(CARGO) build --release

LIBRARY := $(or $(CARGO_TARGET_DIR),target)/library/libfirsttouch.a
library: $(LIBRARY) ## build libfirsttouch, shared and static, in target/library (needs a C compiler only)

$(LIBRARY): scripts/library $(wildcard native/library/*.[ch] native/library/*.map native/library/include/*.h)
	@scripts/library

demo: cargo-found ## in under 30 s: profile a bundled program, find its defect, fix it (needs Rust and a C compiler with OpenMP, no root)
	@scripts/need-openmp
	$(CARGO) build --release
	target/release/firsttouch demo

check: cargo-found ## the inner loop: format, lint and unit tests of what changed since main (BASE=REV since REV, ALL=1 everything)
	@ALL=$(ALL) BASE=$(BASE) scripts/check

test: ## all that CI runs: deps, lint, package check, unit tests, test programs, end-to-end tests, tests in guests; ends with a summary and times (make test-bindings and make package have more)
	@scripts/test

unit: cargo-found ## unit tests only
	CARGO=$(CARGO) scripts/unit

programs: cargo-found ## build the programs of corpus/ and tests/programs/ into target/test-programs/
	$(CARGO) run --quiet -p firsttouch-e2e --bin build-programs

e2e: build programs ## end-to-end tests (E2E='noharm:: sigtrap' runs the module noharm and the tests whose name contains sigtrap)
	@scripts/e2e $(E2E)

corpus-sources: build programs ## profile the corpus with each source of evidence alone, and count the defects found (PASSES=3 BY=sample,watch,docker,paranoid; 10 min a pass)
	$(CARGO) run --quiet --release -p firsttouch-e2e --bin corpus-sources -- --passes $(or $(PASSES),1) --by $(or $(BY),sample,watch,docker,paranoid) $(PROGRAMS)

whole-corpus: build programs ## what make test does with a part of the corpus, with all of it: reports and plans on every machine, each program without perf, the fixes of all (slow)
	FIRSTTOUCH_WHOLE_CORPUS=1 scripts/e2e corpus:: fixes:: mpi_corpus:: --include-ignored --test-threads=1

corpus-agreement: build programs ## compare report and plan of each program of the corpus on every machine of the catalogue (some 20 min)
	$(CARGO) run --quiet --release -p firsttouch-e2e --bin corpus-agreement -- $(FOLDER)

noharm-all: build ## run some 75 real programs bare and profiled, and compare them (PROGRAMS="nginx redis"; 5 min, INSTALL=1 installs them with apt)
	@scripts/noharm-all $(PROGRAMS)

test-bindings: ## test libfirsttouch's interfaces for C++, Fortran, Python and Rust, its packages, and the examples of docs/library.md
	@bindings/tests/run.sh

test-guests: cargo-found ## tests on several NUMA nodes, in emulated guests (GUESTS='two_nodes -- lscpu' runs some of them in one)
	@scripts/test-guests $(GUESTS)

fuzz: cargo-found ## run each parser of untrusted input under libFuzzer for a minute, in parallel (FUZZ_SECONDS=60 FUZZ_JOBS=2; not part of `make test`)
	@scripts/fuzz

lint: cargo-found ## rustfmt, clippy, clang-format, shellcheck, package metadata: warnings are errors
	@scripts/lint

format: cargo-found ## format all Rust, C and C++ in place
	$(CARGO) fmt
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --manifest-path bindings/rust/Cargo.toml
	scripts/source-files c | xargs -0 -r clang-format -i

package: build ## make the packages that would be published, build from them, and install firsttouch with cargo install
	@scripts/package

deny: cargo-found ## cargo-deny: licences, sources, and security advisories where their database can be reached
	@scripts/deny

deps: ## install what the tests use (apt, as root or with passwordless sudo), or say what is missing
	@scripts/deps

bench-kernels: build ## compare the bundled kernels with OpenBLAS, likwid-bench, a plain loop and YASK, with intervals
	scripts/bench-kernels --rounds $(or $(ROUNDS),7)

bench-overhead: build ## measure the cost of profiling, with intervals (PAIRS=10)
	scripts/bench-overhead --pairs $(or $(PAIRS),10)

truth-campaign: build programs ## compare the figures of 20 runs of 10 s with the truth (RUNS=20)
	scripts/truth-campaign --runs $(or $(RUNS),20)

bench-library: ## what libfirsttouch costs beside malloc: ratios with intervals (40 s, on an idle machine)
	@scripts/bench-library $(ROUNDS)

bench-predict: cargo-found ## measure the time of a prediction by nodes, threads and objects
	$(CARGO) run --release --quiet -p firsttouch-predict --example cost

bench-scale: build ## measure time and memory of report, plan, predict, check and diff on profiles of 10^4 to 10^7 rows (SCALE=--quick without the largest)
	$(CARGO) build --release --quiet -p firsttouch-scale
	scripts/bench-scale $(SCALE)

bench-run: build ## measure the start-up cost of `firsttouch run` beside numactl (PAIRS=300)
	scripts/bench-run --pairs $(or $(PAIRS),300)

bench-top: build ## measure the CPU time of `top` beside 1,000 threads, and the speed of a program that it watches (18 min alone on the machine)
	scripts/bench-top

install: ## install program, manual pages, completions, libfirsttouch and licences (PREFIX=/usr/local DESTDIR=; after `make build`)
	@scripts/install "$(DESTDIR)" "$(PREFIX)"

uninstall: ## remove what `make install` installed (same PREFIX and DESTDIR)
	@scripts/install --remove "$(DESTDIR)" "$(PREFIX)"

clean: cargo-found ## remove all build results
	$(CARGO) clean

.PHONY: cargo-found
cargo-found:
	@command -v $(CARGO) >/dev/null || { echo "firsttouch is built with Rust, and '$(CARGO)' is not on PATH: install it from https://rustup.rs" >&2; exit 1; }
