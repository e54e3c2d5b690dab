# Countersign: `make run` starts the suite on this machine, `make test` proves it.
# Needed: make and Go; for the tests also Node.js with npm, and Python 3 with venv.
# Everything else is fetched at the committed versions into the checkout and Go's own
# caches.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

# Every Go module but the one of the build tools.
MODULES := $(patsubst %/,%,$(dir $(shell find . \( -name node_modules -o -path ./build -o -path ./tools \) -prune -o -name go.mod -print | sort)))
# Those with hand-written packages, apart from the end-to-end tests.
UNIT_MODULES := $(filter-out ./test ./proto/gen/go,$(MODULES))
# The race detector needs a C compiler.
RACE := $(if $(shell command -v cc),-race)
# How much each fuzz target runs in `make fuzz`: a count of inputs, or a time like 5m.
FUZZTIME ?= 20000x
# What else `make bench` is told, for example `--only=seals --rounds=9`.
BENCHFLAGS ?=

BUF_PATH := $(CURDIR)/tools/node_modules/.bin:$(PATH)
PYTHON := $(CURDIR)/build/venv/bin/python
LINTER := $(CURDIR)/build/bin/golangci-lint
TIMED := tools/timed.sh

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: NEEDED := go
run: toolchain build ## Build and start the suite on this machine; Ctrl-C ends it.
	@exec build/bin/local

.PHONY: build
build: ## Build all programs into build/bin.
	@mkdir -p build/bin
	@test -e build/bin/local || echo "building the programs (the first time takes some minutes)"
	@go build -o build/bin/ ./services/sealer/cmd/sealer ./services/mcpedge/cmd/mcpedge ./deploy/local/cmd/local
	@go build -C client -o $(CURDIR)/build/bin/ ./cmd/countersign
	@go build -C services/handlers/examples -o $(CURDIR)/build/bin/ ./refunds ./everything

.PHONY: test
test: toolchain test-unit test-fips test-vectors test-end-to-end conformance ## Set up what the tests need and run all of them.

.PHONY: test-unit
test-unit: ## Run every module's own tests, with the race detector.
	@for module in $(UNIT_MODULES); do \
	  $(TIMED) "unit tests of $$module" go test -C $$module $(RACE) -shuffle=on ./... || exit 1; \
	done

.PHONY: test-fips
test-fips: ## Run the sealer's tests with nothing but FIPS 140 cryptography.
	@$(TIMED) "sealer with fips140=only" go test -exec 'env GODEBUG=fips140=only' ./services/sealer/...

.PHONY: test-vectors
test-vectors: build/venv/installed ## Open our tokens with the verifier that is not ours: Python.
	@$(TIMED) "token vectors in Python" $(PYTHON) services/sealer/verifier/verify.py

# The npm packages of the end-to-end tests.
NODE_PACKAGES := $(patsubst %/package-lock.json,%/node_modules/installed,$(wildcard test/*/package-lock.json))

.PHONY: test-end-to-end
test-end-to-end: build/venv/installed $(NODE_PACKAGES) ## Run the suite as processes, with the official clients.
	@COUNTERSIGN_PYTHON=$(PYTHON) $(TIMED) "end to end" go test -C test -count=1 -p 1 -skip TestServerPassesTheOfficialSuite ./...

.PHONY: conformance
conformance: NEEDED := go node
conformance: toolchain test/conformance/node_modules/installed ## Run the official conformance suite against the programs, and show its table.
	@$(TIMED) "official conformance suite" go test -C test -count=1 -v -run TestServerPassesTheOfficialSuite ./conformance

.PHONY: bench
bench: ## Measure the suite beside other servers, in turns; takes about ten minutes.
	@mkdir -p build/bench
	@go build -o build/bench/ ./services/sealer/cmd/sealer ./services/mcpedge/cmd/mcpedge
	@go build -C test/benchmark -o $(CURDIR)/build/bench/benchmark .
	@build/bench/benchmark --programs build/bench $(BENCHFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target with FUZZTIME (20000x) inputs each.
	@for module in $(UNIT_MODULES); do \
	  $(TIMED) "fuzz targets of $$module" tools/fuzz.sh $$module $(FUZZTIME) || exit 1; \
	done

.PHONY: vectors
vectors: ## Write the token vectors again, from the code.
	@go test ./services/sealer/token -run Vectors -update

.PHONY: lint
lint: $(LINTER) ## Run all linters over all modules.
	@for module in $(filter-out ./proto/gen/go,$(MODULES)); do \
	  (cd $$module && $(CURDIR)/$(TIMED) "lint of $$module" $(LINTER) run --allow-serial-runners --config $(CURDIR)/.golangci.yaml ./...) || exit 1; \
	done

.PHONY: format
format: $(LINTER) tools/node_modules/installed ## Format the Go code and the contracts.
	@for module in $(filter-out ./proto/gen/go,$(MODULES)); do \
	  (cd $$module && $(LINTER) fmt --config $(CURDIR)/.golangci.yaml ./...) || exit 1; \
	done
	@PATH=$(BUF_PATH) buf format --write

.PHONY: generate
generate: tools/node_modules/installed ## Generate the Go code of the contracts.
	@PATH=$(BUF_PATH) buf generate

.PHONY: check
check: check-contracts check-generated check-modules check-licences check-repository ## Check contracts, generated code, modules, licences and the repository.

.PHONY: check-contracts
check-contracts: tools/node_modules/installed ## Lint the contracts and compare them with the earlier ones.
	@PATH=$(BUF_PATH) $(TIMED) "buf lint" buf lint
	@PATH=$(BUF_PATH) $(TIMED) "buf format" buf format --diff --exit-code
	@PATH=$(BUF_PATH) $(TIMED) "buf breaking" tools/breaking.sh

.PHONY: check-generated
check-generated: tools/node_modules/installed ## Check that the generated code is what the contracts give.
	@rm -rf build/generated
	@PATH=$(BUF_PATH) $(TIMED) "generate code" buf generate --output build/generated
	@$(TIMED) "generated code is fresh" diff -r build/generated/proto/gen/go/countersign proto/gen/go/countersign

.PHONY: check-modules
check-modules: ## Check that every go.mod says what its module needs, no more and no less.
	@for module in $(MODULES); do \
	  $(TIMED) "go.mod of $$module" go -C $$module mod tidy -diff || exit 1; \
	done

.PHONY: check-licences
check-licences: build/venv/installed ## Check the licences of all dependencies.
	@$(TIMED) "licences" python3 tools/licences.py $(PYTHON) $(MODULES)

.PHONY: check-repository
check-repository: ## Check that the files speak of the product alone.
	@$(TIMED) "repository" python3 tools/repository.py

# What the goal needs on this machine.
NEEDED := go node python

.PHONY: toolchain
toolchain: ## Check that this machine has Go, Node.js and Python.
	@tools/toolchain.sh $(NEEDED)

.PHONY: clean
clean: ## Remove everything that was built.
	@rm -rf build tools/node_modules test/*/node_modules

.PHONY: linter
linter: $(LINTER) ## Build golangci-lint.

$(LINTER): tools/go.mod tools/go.sum
	@echo "building golangci-lint (the first time takes a few minutes)"
	@GOWORK=off go build -C tools -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# Install scripts are not run: no package here needs one.
%/node_modules/installed: %/package.json %/package-lock.json
	@echo "installing the npm packages of $*"
	@npm ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

PYTHON_REQUIREMENTS := $(wildcard test/*/requirements.txt services/sealer/verifier/requirements.txt)
build/venv/installed: $(PYTHON_REQUIREMENTS)
	@echo "installing the Python packages of the tests"
	@python3 -m venv --clear build/venv
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check $(addprefix --requirement ,$(PYTHON_REQUIREMENTS))
	@touch $@
