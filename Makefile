# The one door. Everything needed is installed (Debian packages), built into target/, and run from there.
# A recipe that takes more than a few lines is a script: see setup/, gallery/, tests/ and bench/.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

JOBS ?= 2
OUT := target/memlode
MEMLODE := $(OUT)/bin/memlode
PYTHON ?= python3
SECONDS_EACH ?= 60
PREFIX ?= /usr/local

export CARGO_BUILD_JOBS ?= $(JOBS)

# Files of ours by language, for the linters. The compiler tests are inputs, laid out for their checks.
C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' | grep -v -P '^(format/generated/|instrument/test/(?!Inputs))')
PYTHON_FILES = $(shell git ls-files -co --exclude-standard '*.py' ':!format/generated')
SHELL_FILES = $(shell git ls-files -co --exclude-standard '*.sh' .ci/run)

##@ Start here

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Install, build, and find the field that misses in a gallery program
	@$(MAKE) --no-print-directory build CLI_OPTIONS='$(if $(shell $(MEMLODE) bench --help 2>/dev/null),,--no-default-features)'
	@gallery/demo.sh

setup: ## Install the Debian packages that building takes
	@setup/setup.sh

setup-checks: setup ## And those that tests, lint and benchmarks take besides
	@setup/setup.sh checks

build: setup ## Build the compiler plug-in, the run-time library and the command line
	@$(MAKE) --no-print-directory --jobs=$(JOBS) pass-22 runtime stdcxx cli

install: $(if $(and $(SUDO_USER),$(wildcard $(MEMLODE))),,build) ## Copy it to PREFIX/bin, lib and include (PREFIX=/usr/local; DESTDIR for packages)
	@DESTDIR='$(DESTDIR)' setup/install.sh '$(PREFIX)'

python: setup-checks ## Build the Python package into a virtual environment, target/python
	@setup/python.sh

dist: build python ## Pack it for other machines into dist/: a tarball, and a wheel with the command inside
	@setup/dist.sh

##@ Check

test: build-checks ## Every test: Rust, C, LLVM plug-ins, Python, gallery, programs of others (SUITES="rust c …" for some)
	@tests/run.sh $(SUITES)

quick: ## The tests of what changed since the last commit (SINCE=COMMIT), and a few from end to end, in some minutes
	@tests/quick.sh $(SINCE)

lint: lint-rust lint-cxx lint-scripts ## Formatting, warnings, static analysis, the rules between folders

lint-rust: build-checks
	cargo fmt --all --check
	cargo clippy --release --all-targets -- -D warnings
	cargo clippy --release --bin memlode --no-default-features -- -D warnings
	cargo xtask check

lint-cxx: build-checks
	clang-format-22 --dry-run -Werror $(C_FILES)
	setup/tidy.sh

lint-scripts: setup-checks
	shellcheck -x $(SHELL_FILES)
	$(PYTHON) -B setup/check_python.py $(PYTHON_FILES)

real: build-checks ## Lua, SQLite, zstd, a C++ and two Rust programs: built by their own build systems, run, checked
	$(PYTHON) -B tests/real/real.py

gallery: build-checks ## The gallery's programs: predicted misses of each cure and those of the cured program (target/bench/gallery.json)
	$(PYTHON) -B tests/gallery.py --rounds 5 --out target/bench/gallery.json

gallery-html: build ## The page of each gallery program: target/gallery/NAME.html
	@gallery/pages.sh

fuzz: build-checks ## Random programs against their own account, strangers' bytes against the readers (SECONDS_EACH=60, FROM=seed)
	$(PYTHON) -B tests/fuzz/fuzz.py --seconds $(SECONDS_EACH) $(if $(FROM),--start $(FROM))
	tests/fuzz/reader.sh $(SECONDS_EACH)

torture: build-checks ## GCC's torture tests at -O0, -O2 and -O3 -flto: some hours (OPTIONS="--every 10" for a tenth)
	$(PYTHON) -B tests/torture/torture.py $(OPTIONS)

bias-test: build-checks ## The laws of `memlode bench`, `bias` and `alias`, on samples whose truth is known and on small programs
	cargo test --release --package memlode-measure
	cargo test --release --package memlode-cli --test cli -- bench:: bias:: bias_machine::

##@ Measure

bench: bench-record bench-engine ## Every benchmark: recording, replaying, and the simulator alone
	cargo run --release --package memlode-simulate --example throughput

bench-record: build-checks ## What recording costs, beside native, a call per access and cachegrind (OPTIONS=--quick)
	$(PYTHON) -B bench/record.py $(OPTIONS)

bench-engine: build-checks ## How fast traces are replayed, stage by stage (OPTIONS=--quick)
	$(PYTHON) -B bench/engine.py $(OPTIONS)

bench-bursts: build-checks ## How far reports on samples in bursts are from those on whole traces (OPTIONS=--quick)
	$(PYTHON) -B bench/bursts.py $(OPTIONS)

bench-truth: build-checks ## How far the models' rankings are those of a timer, over some fifty programs (OPTIONS=--quick)
	$(PYTHON) -B bench/truth.py $(OPTIONS)

bench-sampling: build-checks ## What `memlode sample` costs the program that it samples (OPTIONS=--quick)
	$(PYTHON) -B bench/sampling.py $(OPTIONS)

bench-calibration: build-checks ## How well `memlode machine calibrate` repeats on this machine (OPTIONS=--quick)
	$(PYTHON) -B bench/calibration.py $(OPTIONS)

bench-bias: build-checks ## What layout does on this machine, and whether `bench` and `bias` see it: 20 minutes (OPTIONS=--quick)
	$(PYTHON) -B bench/bias.py $(OPTIONS)

spark-test: build python ## Test memlode.spark in other versions of Spark (VERSIONS="3.5.7 4.0.1")
	setup/spark.sh $(or $(VERSIONS),3.5.7 4.0.1)

bench-spark: python ## What analyses of TRACE cost in one pass, in processes and in Spark (OPTIONS=--parts 4)
	target/python/bin/python -BP bench/spark.py $(TRACE) $(OPTIONS)

bench-sharing: build-checks ## What threads lose to each other's lines, measured and predicted (OPTIONS=--quick)
	$(PYTHON) -B bench/sharing.py $(OPTIONS)

##@ Housekeeping

format: setup-checks ## Put every file in the project's format
	cargo fmt --all
	clang-format-22 -i $(C_FILES)
	cargo xtask wrap

gen: setup-checks ## Write generated files anew: format/generated/, the registry of analyses, docs/analyses/
	cargo xtask gen

fixtures: setup-checks ## Write down anew what analyses find in crates/analyses/fixtures, and the schema of their tables
	MEMLODE_UPDATE=1 cargo test --release --package memlode-report --test fixtures

clean: ## Remove everything that was built
	rm -rf target

# ---- parts of `build` ----

# And the plug-in for the oldest LLVM, which tests hold to what the first does.
build-checks: build pass-19

pass-19: | setup-checks
pass-%: | setup
	@$(MAKE) --no-print-directory -s -C instrument LLVM=$*

runtime: pass-22 | setup
	@$(MAKE) --no-print-directory -s -C record CC=clang-22
	@$(MAKE) --no-print-directory -s -C stagger CC=clang-22
	@$(MAKE) --no-print-directory -s -C blocks CC=clang-22

# Its functions are recorded.
stdcxx: pass-22
	@$(MAKE) --no-print-directory -s -C record/stdcxx

# The demo leaves out the commands that time programs, unless they are there. CMake and others want a compiler to be one path, and makefiles look for `clang` in its name: hence the links.
cli: | setup
	@env -u MAKEFLAGS cargo build --release --bin memlode $(CLI_OPTIONS)
	@mkdir -p $(OUT)/bin
	@install -C target/release/memlode $(MEMLODE)
	@for name in cc c++ fc clang clang++; do ln -sf memlode $(OUT)/bin/memlode-$$name; done

.PHONY: help demo setup setup-checks build build-checks install python dist test quick gallery gallery-html bias-test lint lint-rust lint-cxx lint-scripts real torture fuzz bench bench-record bench-engine bench-bias bench-sharing bench-spark spark-test bench-bursts bench-truth bench-sampling bench-calibration format gen fixtures clean runtime stdcxx cli
