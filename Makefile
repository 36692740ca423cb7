# Everything that people and continuous integration do here, one target each. `make` alone lists them.
# Only Python 3.11 or newer has to be there; `make run PYTHON=/path/to/python` picks one.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python scripts/install.py --constraint constraints.txt
EXAMPLE := src/bayplan/examples/three-zones
SIZE ?= small
ARGS ?=
ORACLE ?=
HELM_VERSION := v3.22.0
ACTIONLINT_VERSION := v1.7.12
# What touches the dependencies: files, HTTP, WebSockets, metrics, tables, the terminal.
BOUNDS_TESTS := tests/base tests/formats/test_documents.py tests/formats/test_yaml_text.py tests/http_api tests/apiserver/http tests/extender tests/live tests/client \
	tests/analysis tests/cli tests/app tests/project/test_private_parts.py

# The first Python that is new enough. Evaluated only when the environment has to be made.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$name; break; fi; done)

.DEFAULT_GOAL := help
# `test-lowest` and `test-latest` are not part of `make test`, because they take minutes and the network.
.PHONY: help build build-checked compiled run test test-lowest test-latest test-arm other-controllers test-cluster test-crash test-sync test-fuzz-api test-hostile test-ray test-readers coverage lint lint-workflows format page-types conformance agreement oracle fuzz proofs bench bench-against-real docs docs-cli scenario-schema constraints wheel sdist clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.ready ## run a cluster with the bundled example and report on it; Ctrl-C ends it (ARGS="..." is passed on, e.g. --once)
	@echo "To use the command bayplan in this shell: . $(BIN)/activate"
	@test -n "$(BAYPLAN_UNCOMPILED)" || $(BIN)/python -m building --if-possible || { \
		echo "Running uncompiled, several times slower, because compiling failed." >&2; export BAYPLAN_UNCOMPILED=1; }; \
	$(BIN)/python -m bayplan up $(EXAMPLE) $(ARGS)

build: $(VENV)/.ready ## compile the modules that have a .pxd (docs/compiled.md); fails if nothing here can compile
	@$(BIN)/python -m building

build-checked: $(VENV)/.ready-dev ## run the tests of compiled modules with checked bounds, under ASan and UBSan
	@$(BIN)/python -m building --checked --no-zig
	@$(BIN)/python -m building.checked $(ARGS)

compiled: $(VENV)/.ready ## compile if a compiler works, and say so if none does (BAYPLAN_UNCOMPILED=1 leaves it out)
	@test -n "$(BAYPLAN_UNCOMPILED)" || $(BIN)/python -m building --if-possible

test: $(VENV)/.ready-dev ## do all that continuous integration does
	@$(MAKE) --no-print-directory -j2 lint compiled
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-lowest: $(VENV)/.ready ## install the lowest versions of all dependencies in an environment of their own, and run a selection of tests
	@$(BIN)/python scripts/bounds.py build/lowest
	@build/lowest/bin/python -m pytest -q -p no:cacheprovider $(or $(ARGS),$(BOUNDS_TESTS))

test-latest: $(VENV)/.ready compiled ## the same with the latest versions that are allowed
	@$(BIN)/python scripts/bounds.py build/latest --latest
	@build/latest/bin/python -m pytest -q -p no:cacheprovider $(or $(ARGS),$(BOUNDS_TESTS) tests/engine tests/plugins)

OTHER_CONTROLLERS := $(CURDIR)/build/cluster-programs
JOBSET_VERSION := v0.10.1
KWOK_VERSION := v0.8.0
DESCHEDULER_VERSION := v0.36.0
other-controllers: ## build descheduler, KWOK and JobSet, which test-cluster then runs against the API (needs Go)
	@GO="$(OTHER_CONTROLLERS)" DESCHEDULER=$(DESCHEDULER_VERSION) KWOK=$(KWOK_VERSION) JOBSET=$(JOBSET_VERSION) \
		bash tests/cluster_programs/build_other_controllers.sh

test-cluster: $(VENV)/.ready-dev compiled ## run a stock kube-scheduler, kube-controller-manager, kubectl, helm and client-go against the API, follow a real cluster, and run the conformance tests of CEL (needs Go)
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed (https://go.dev/dl); the first build takes some minutes" >&2; exit 2; }
	@BIN="$(CURDIR)/build/cluster-programs" bash oracle/current/realcluster/build.sh kcm
	@cd tests/cluster_programs && go build -ldflags "-X k8s.io/component-base/version.gitVersion=v1.36.3" \
		-o ../../build/cluster-programs/ k8s.io/kubernetes/cmd/kubectl ./informers
	@cd tests/cluster_programs/older_kubectl && go build -ldflags "-X k8s.io/component-base/version.gitVersion=v1.28.15" \
		-o ../../../build/cluster-programs/kubectl-1.28 k8s.io/kubernetes/cmd/kubectl
	@GOBIN="$(CURDIR)/build/cluster-programs" go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	@cd tests/cluster_programs && go mod download cel.dev/expr
	@BAYPLAN_CLUSTER_PROGRAMS=build/cluster-programs $(BIN)/python -m pytest tests/cel/test_conformance.py tests/cluster_programs $(ARGS)

test-crash: $(VENV)/.ready-dev compiled ## kill -9 a durable server 200 times under load: make test-crash ARGS="--kills 20 --seed 2"
	@$(BIN)/python -m tests.crash $(ARGS)

test-sync: $(VENV)/.ready-dev compiled ## compare default spreading of followers and their sources in 500 random clusters: make test-sync ARGS="--cases 2000"
	@$(BIN)/python -m tests.sync.spread_agreement $(ARGS)

test-fuzz-api: $(VENV)/.ready-dev compiled ## send 10,000 made-up requests to the API: make test-fuzz-api ARGS="--requests 2000 --seed 2"
	@$(BIN)/python -m tests.apiserver.fuzz $(ARGS)

test-hostile: $(VENV)/.ready-dev compiled ## send 2,000 hostile requests to a server: make test-hostile ARGS="--only patches --seed 2"
	@$(BIN)/python -m tests.hostile $(ARGS)

test-ray: $(VENV)/.ready-dev compiled ## run a sweep on a Ray cluster that loses a node (installs ray)
	@$(PIP) ray
	@$(BIN)/python -m pytest tests/sweeps/test_sweep.py -k ray $(ARGS)

test-readers: $(VENV)/.ready-dev compiled ## schedule 100,000 pods while others read over HTTP: make test-readers ARGS="--pods 4000 --readers 8"
	@$(BIN)/python -m tests.readers $(ARGS)

test-arm: $(VENV)/.ready-dev ## compare Go's arithmetic on an emulated arm64 with the recorded results (needs qemu-user-static)
	@$(PIP) ziglang
	@$(BIN)/python -m tests.building.arm64

coverage: $(VENV)/.ready-dev ## run the tests uncompiled and measure which lines run; fails below the floor in pyproject.toml
	@mkdir -p build/coverage && rm -f build/coverage/.data*
	@BAYPLAN_UNCOMPILED=1 COVERAGE_PROCESS_START=pyproject.toml $(BIN)/python -m coverage run -m pytest -q -n 2 $(ARGS)
	@$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage html --quiet && $(BIN)/python -m coverage report

lint: $(VENV)/.ready-dev ## formatting, ruff, mypy --strict, layers; the page's modules: tsc --strict, ESLint
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/lint_page.py

lint-workflows: ## check the workflow files with actionlint (needs Go)
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed (https://go.dev/dl)" >&2; exit 2; }
	@go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

format: $(VENV)/.ready-dev ## format the code and sort the imports
	@$(BIN)/ruff check --fix --select I --quiet . ; $(BIN)/ruff format .

conformance: compiled ## compare with recorded answers: make conformance FILES="..." (default: all in conformance/)
	@$(BIN)/python -m bayplan conformance $(or $(FILES),conformance/cycles conformance/sampled conformance/queue conformance/hints conformance/config conformance/e2e conformance/annotations/scenarios.jsonl.gz) $(ARGS)

agreement: compiled ## run all recorded cases; write conformance/agreement.json and the tables of docs/fidelity.md
	@$(BIN)/python -m bayplan.conformance.agreement conformance
	@$(BIN)/python -m bayplan.conformance.fidelity conformance docs/fidelity.md

oracle: ## build the programs that ask the real scheduler into oracle/BIN (needs Go)
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed (https://go.dev/dl); nothing but make fuzz needs it" >&2; exit 2; }
	@cd oracle/current && go build -o ../BIN/ ./cmd/...
	@cd oracle/classic && go build -o ../BIN/classic/ ./cmd/...

fuzz: $(VENV)/.ready-dev compiled ## ask the real scheduler and us about random cases: make fuzz ARGS="--kind queue --cases 5000"
	@test -n "$(ORACLE)" || test -x oracle/BIN/cycle || $(MAKE) oracle
	@$(BIN)/python -m fuzz $(if $(ORACLE),--oracle $(ORACLE)) $(ARGS)

proofs: $(VENV)/.ready-dev compiled ## prove answers by brute force on random clusters: make proofs ARGS="unblock --cases 500"
	@$(BIN)/python -m proofs $(ARGS)

bench: $(VENV)/.ready-dev compiled ## run the benchmarks: make bench SIZE=large ARGS="cycle"
	@$(BIN)/python -m benchmarks --size $(SIZE) $(ARGS)

bench-against-real: $(VENV)/.ready-dev compiled ## measure ours and the real engine in one run (needs Go): make bench-against-real ARGS="--nodes 1000 --json build/real.json"
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed (https://go.dev/dl); the first build takes some minutes" >&2; exit 2; }
	@cd oracle/current && go build -o ../../build/real-bench ./realcluster/bench
	@$(BIN)/python -m benchmarks.against_real $(ARGS)

docs: $(VENV)/.ready-dev ## build the documentation as a site: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo "build/site/index.html; with the search: python3 -m http.server --directory build/site"

page-types: $(VENV)/.ready ## write docs/openapi.json and the page's declarations from the structs of the HTTP API
	@$(BIN)/python scripts/make_page_types.py

docs-cli: compiled ## write docs/cli.md from the program's own help
	@$(BIN)/python -m bayplan.cli.reference docs/cli.md

scenario-schema: $(VENV)/.ready ## write docs/scenario.schema.json from the structs of scenario files
	@$(BIN)/python -m bayplan.scenarios.json_schema docs/scenario.schema.json

constraints: $(VENV)/.ready-dev ## write constraints.txt from what is installed; lines with a marker stay as they are
	@{ sed '/^[^#]/,$$d' constraints.txt; { $(BIN)/python -m pip freeze --all --exclude-editable | grep -v "^pip==\|^numpy=="; \
		grep "^ziglang==\|;" constraints.txt; } | grep == | sort -u | LC_ALL=C sort -f; } > constraints.new
	@mv constraints.new constraints.txt

wheel: $(VENV)/.ready ## build the wheel into dist/
	@$(BIN)/python -c "from hatchling.build import build_wheel; print('dist/' + build_wheel('dist'))"

sdist: $(VENV)/.ready ## build the source distribution into dist/
	@$(BIN)/python -c "from hatchling.build import build_sdist; print('dist/' + build_sdist('dist'))"

clean: ## remove the environment and all caches
	@rm -rf $(VENV) build src/bayplan/_compiled dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend is installed like everything else, so that its version is pinned too (hence no build isolation).
$(VENV)/.ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Bayplan needs Python 3.11 or newer; none was found. Try: make run PYTHON=/path/to/python" >&2; exit 2; }
	@echo "Installing into $(VENV) (once, a minute or more):" >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) can't make a virtual environment (on Debian: apt-get install python3-venv)" >&2; exit 2; }
	@$(PIP) hatchling cython setuptools
	@BAYPLAN_COMPILE=0 $(PIP) --no-build-isolation --editable '.[all]'
	@echo "  compiling to bytecode" >&2
	@$(BIN)/python -m compileall -q src
	@env -u PYTHONDONTWRITEBYTECODE BAYPLAN_UNCOMPILED=1 $(BIN)/python -c "import bayplan.cli.simulate, bayplan.cli.up"
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@BAYPLAN_COMPILE=0 $(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@
