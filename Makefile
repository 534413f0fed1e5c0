# Everything here needs only make and, where something is missing, a package manager:
# scripts/setup.sh installs what a target calls.

CARGO_HOME ?= $(HOME)/.cargo
CARGO_TARGET_DIR ?= target
export CARGO_HOME CARGO_TARGET_DIR
# Debian keeps nginx and haproxy where an ordinary user's PATH does not look.
export PATH := $(CARGO_HOME)/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin

# What `subak --version` calls the commit; nothing outside of a checkout.
SUBAK_COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
export SUBAK_COMMIT

SUBAK := $(CARGO_TARGET_DIR)/release/subak
DEB := $(CARGO_TARGET_DIR)/deb
DIST := $(CARGO_TARGET_DIR)/dist
BENCH := $(CARGO_TARGET_DIR)/release/subak-bench
# Options of subak-bench: make bench BENCH_OPTIONS='--quick --cases keepalive-64'
BENCH_OPTIONS ?=
BENCH_bench = $(BENCH) run --subak $(SUBAK) --output $(CARGO_TARGET_DIR)/bench $(BENCH_OPTIONS)
BENCH_soak = $(BENCH) soak --subak $(SUBAK) --output $(CARGO_TARGET_DIR)/bench $(BENCH_OPTIONS)

# Most end-to-end tests wait for something most of the time.
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))

.PHONY: help demo build test lint suites bench soak lab papers setup deb deb-test unit-test dist dist-test

help:
	@echo 'make demo    Subak before three endpoints, live'
	@echo 'make build   the release binary'
	@echo 'make dist    tarball, Debian package, OCI image and checksums in $(DIST); make dist-test tries them'
	@echo 'make deb     a Debian package in $(DEB); make deb-test and unit-test try it in a bare Debian'
	@echo 'make test    format, lints and every test'
	@echo 'make lint    format, lints and dependencies alone'
	@echo 'make suites  h2spec, gRPC interop, WebSocket, Prometheus, schemathesis, …; skips loudly what is missing'
	@echo 'make bench   cost beside nginx and HAProxy; BENCH_OPTIONS=--quick for a short run'
	@echo 'make lab     the laboratory against theory: the simulator and the whole queueing table'
	@echo 'make papers  five papers on load balancing, run again (half an hour); PAPERS_OPTIONS=--dry-run lists it'
	@echo 'make soak    ten minutes of connections coming and going: does memory settle?'

setup:
	@scripts/setup.sh build

demo: build
	@$(SUBAK) demo

build: setup
	@cargo build --locked --release --package subak

# Clippy's driver compiles the tests and lints at the same time. A separate `cargo clippy` would check
# every dependency a second time, a third of the build from nothing.
test: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
test: export CLIPPY_ARGS := -Dwarnings
test:
	@scripts/setup.sh test
	cargo fmt --all --check
	cargo test --locked --workspace --all-targets --no-run
	cargo test --locked --workspace --doc --quiet
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --locked --workspace --lib --bins --tests --no-fail-fast
	@PATH=$$PATH:/usr/local/go/bin; command -v go >/dev/null \
	|| echo 'SKIPPED: h2spec and gRPC interop, for want of Go 1.26: make suites would run them' >&2
	@echo 'SKIPPED: what make suites runs: h2spec, gRPC interop, WebSocket, Prometheus, schemathesis' >&2

lint: setup
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny --locked check; \
	else echo 'SKIPPED: licences, advisories and bans of dependencies (cargo-deny is not installed)' >&2; fi

# Other people's checks: what they need is not installed for `make test`.
suites: build
	@scripts/setup.sh suites || echo 'SKIPPED: what apt could not install' >&2
	@scripts/suites.sh $(SUBAK) $(CARGO_TARGET_DIR)/suites

bench soak:
	@scripts/setup.sh bench
	@cargo build --locked --release --package subak --package subak-lab
	@$(BENCH_$@)

# What the laboratory says of itself, at full length: minutes. All four parts are run, whatever becomes
# of one. LAB_OPTIONS=quick judges nothing.
lab: build
	@scripts/setup.sh bench
	@status=0; \
	cargo bench --locked --package subak-lab --bench generator -- $(LAB_OPTIONS) || status=1; \
	TOOLS=$(CARGO_TARGET_DIR)/tools scripts/crosscheck.sh $(SUBAK) || status=1; \
	cargo bench --locked --package subak-sim --bench queueing -- $(LAB_OPTIONS) || status=1; \
	cargo bench --locked --package subak-trace --bench million -- $(LAB_OPTIONS) || status=1; \
	exit $$status

# Five papers' experiments on real processes; what was measured stays, so that it goes on where it was.
# PAPERS_OPTIONS='P2 --only round_robin' runs a part; --scale 1 takes many hours.
PAPERS_OPTIONS ?= --scale 0.01
papers:
	@scripts/setup.sh papers
	@cargo build --locked --release --package subak
	@$(SUBAK) lab papers $(PAPERS_OPTIONS)

# The same commit gives the same packages.
dist deb deb-test unit-test: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
deb: build
	@packaging/deb/build.sh $(SUBAK) $(DEB)

# Installs, starts, stops, upgrades and purges it: without systemd, and under one of its own. The newer
# package is the same with another revision.
TRY_deb-test = packaging/deb/test.sh
TRY_unit-test = packaging/systemd/test.sh
deb-test unit-test: build
	@scripts/setup.sh deb
	@$(TRY_$@) "$$(packaging/deb/build.sh $(SUBAK) $(DEB) 1)" "$$(packaging/deb/build.sh $(SUBAK) $(DEB) 2)"

# Everything that is given out.
dist: build
	@scripts/setup.sh dist
	@packaging/dist/build.sh $(SUBAK) $(DIST)

dist-test: build
	@scripts/setup.sh dist
	@packaging/dist/test.sh $(SUBAK)
