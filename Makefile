# `make demo` and `make test` are all one needs; both install what this machine lacks. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(HOME)/.cargo/bin:$(PATH)

CARGO ?= cargo
# nextest where it is installed; it does not run the tests in doc comments, so those follow by themselves.
NEXTEST := $(shell PATH="$(HOME)/.cargo/bin:$$PATH" command -v cargo-nextest 2>/dev/null)
MDBOOK_VERSION := 0.5.4
# What is installed is static: it starts in half the time, and runs on every distribution. Only with a target that is named
# are the compiler's own plug-ins, which must not be, left out of it.
HOST := $(shell PATH="$(HOME)/.cargo/bin:$$PATH" rustc -vV 2>/dev/null | sed -n 's/^host: //p')
STATIC := RUSTFLAGS="-C target-feature=+crt-static"

# What `srt --version` says; a build that is told nothing says the version alone.
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)$(if $(COMMIT), ($(COMMIT)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## build, then watch a policy hold an agent-like script (under a minute)
	@.ci/setup demo
	$(CARGO) build --locked
	@tests/demo/run target/debug/srt

.PHONY: test
test: ## every test but the long ones
	@.ci/setup test
ifdef NEXTEST
	$(CARGO) nextest run --locked --no-fail-fast
	$(CARGO) test --locked --doc --quiet
else
	$(CARGO) test --locked --no-fail-fast
endif

.PHONY: test-long
test-long: ## the same with many more generated cases, and the tests marked as long
	@.ci/setup test
	PROPTEST_CASES=20000 ANALYSIS_CASES=1000000 $(CARGO) test --locked --profile long --no-fail-fast -- --include-ignored --skip groups::

.PHONY: cgroups
cgroups: ## the tests of limits in virtual machines with cgroup v2, as root, on Debian
	@.ci/setup cgroups
	@tests/enforcement/cgroups

.PHONY: lint
lint: ## formatting, clippy, documentation; warnings are errors
	@.ci/setup lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --quiet

.PHONY: cross
cross: ## clippy for macOS and Windows; under Wine the tests of all but enforcement, and what srt.exe submits; on Debian
	@.ci/cross

.PHONY: bench
bench: ## start-up, masks, large workspaces, memory, real work, connections, beside bwrap and the npm peer; an editor; each stage by itself
	@.ci/setup bench
	$(STATIC) $(CARGO) build --locked --release --target $(HOST)
	@tests/bench/run target/$(HOST)/release/srt
	@tests/bench/work target/$(HOST)/release/srt
	@tests/bench/network target/$(HOST)/release/srt
	@tests/bench/editor target/$(HOST)/release/srt
	$(CARGO) bench --locked --bench policies

.PHONY: beside
beside: ## what the npm peer and ours do with the same settings, as a table; `tests/compat/beside` says more
	@.ci/setup bench
	$(CARGO) build --locked
	@tests/compat/beside target/debug/srt

.PHONY: fuzz-short
fuzz-short: ## every reader of hostile bytes, a minute each, with cargo-fuzz
	@.ci/fuzz 60

.PHONY: soak
soak: ## ten minutes of mixed connections through one sandbox: nothing lost, descriptors and memory flat
	@.ci/setup bench
	$(STATIC) $(CARGO) build --locked --release --target $(HOST)
	@tests/bench/soak target/$(HOST)/release/srt

.PHONY: install
install: ## build and install `srt` into ~/.cargo/bin, or PREFIX/bin
	@.ci/setup install
	SRT_VERSION="$(VERSION)" $(STATIC) $(CARGO) install --locked --path . --target $(HOST) $(if $(PREFIX),--no-track --force --root "$(PREFIX)")

.PHONY: deb
deb: ## a Debian package of the commit that is checked out, with a list of checksums, in target/dist
	@.ci/setup install
	CARGO="$(CARGO)" .ci/deb

.PHONY: reproducible
reproducible: ## build the package twice, in two places, and compare
	@.ci/setup install
	CARGO="$(CARGO)" .ci/reproducible

.PHONY: man
man: ## the manual pages, in target/man
	$(CARGO) run --locked --quiet -- man target/man

.PHONY: vscode
vscode: ## the extension for Visual Studio Code, target/srt-policy.vsix
	@.ci/setup vscode
	mkdir -p target/vscode
	cp -R -L editors/vscode/. target/vscode
	cd target/vscode && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cd target/vscode && npm run --silent package -- --out ../srt-policy.vsix

.PHONY: book
book: ## the book, as HTML, in target/book
	@command -v mdbook >/dev/null || \
		$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search
	mdbook build book

.PHONY: pages
pages: ## write the book's pages of findings from the code
	UPDATE_PAGES=1 $(CARGO) test --locked --test integration the_pages_of_findings

.PHONY: generated
generated: ## write the table of the embedded modules from their texts
	UPDATE_GENERATED=1 $(CARGO) test --locked --lib the_table_of_modules

.PHONY: setup
setup: ## install everything any target needs, and do nothing else
	@.ci/setup demo test lint bench

.PHONY: clean
clean: ## remove what was built
	$(CARGO) clean
