# Everything here works on a fresh machine with Python 3.11+, pip, make and git, and leaves nothing
# outside the checkout.

# The first of these that is Python 3.11 or newer builds .venv; name yours with `make PYTHON=…`.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
MKCOV := $(BIN)/mkcov
# The container tests share one engine, hence one worker.
PYTEST_ARGS ?= --numprocesses auto --maxprocesses 4 --dist loadgroup

# Where the container tests can run, they need tools of their own.
EXTRAS := dev$(if $(wildcard ../shared/container/with_engine.sh),$(shell echo ,container))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_CACHE_DIR := 1
export PIP_NO_INPUT := 1

# Our environment is built anew if its Python is gone or the checkout was moved.
ifneq ($(wildcard $(VENV)/.installed),)
ifneq ($(shell $(PY) -c '' 2>/dev/null && grep -sqF '$(CURDIR)/$(BIN)/' $(MKCOV) && echo sound),sound)
$(shell rm -rf $(VENV))
endif
endif

.PHONY: help demo test check format docs golden fixtures detection lock bench clean
.DEFAULT_GOAL := help
.NOTPARALLEL:

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while read -r name text; do \
		printf '  make %-9s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.installed  ## audit the unwired demo
	@echo '$$ mkcov check fixtures/demo/unwired'
	@$(MKCOV) check fixtures/demo/unwired </dev/null; status=$$?; echo; \
	if [ $$status -eq 1 ]; then \
		echo "mkcov exited with 1: that is what blocks the merge. The demo did what it should."; \
	else echo "mkcov exited with $$status, but the unwired demo must exit with 1." >&2; exit 1; fi

test: $(VENV)/.installed-dev  ## run all tests
	@mkdir -p build
	@$(PY) -m pytest --basetemp build/pytest $(PYTEST_ARGS) </dev/null

check: $(VENV)/.installed-dev  ## lint, format, types, layers, workflows, generated docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/zizmor --offline --quiet --no-progress --persona pedantic .github action.yml
	$(BIN)/actionlint -shellcheck= -pyflakes=
	$(PY) -m tools.docs --check

format: $(VENV)/.installed-dev  ## format and apply the linter's safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: $(VENV)/.installed-dev  ## regenerate docs/ and the generated parts of the README
	$(PY) -m tools.docs

golden: $(VENV)/.installed-dev  ## regenerate the golden files (read the diff!)
	$(PY) -m tools.golden

fixtures: $(VENV)/.installed-dev  ## rebuild the fixtures
	$(PY) -m tools.build_fixtures

detection: $(VENV)/.installed-dev  ## plant every kind of fault and write docs/detection.md (takes minutes)
	$(PY) -m tools.detection --write

lock: $(VENV)/.installed-dev  ## pin anew what the image installs (read the diff!)
	$(PY) -m tools.lock

bench: $(VENV)/.installed  ## measure mkcov against json.load (BENCH="DIR" for a graph of your own)
	$(PY) -m benchmarks.audit_vs_seed $(BENCH)

clean:  ## remove all that make created
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(PY):
	@for name in $(PYTHON); do \
		if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found=$$name; break; fi; done; \
	if [ -z "$$found" ]; then \
		echo "mkcov needs Python 3.11 or newer; none of these is: $(PYTHON). Try: make PYTHON=/path/to/python" >&2; \
		exit 2; fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$found cannot create virtual environments: install its venv package (Debian: apt install python3-venv)" >&2; \
		exit 2; fi; \
	echo "Creating $(VENV) with $$found …"; "$$found" -m venv --clear $(VENV)

$(VENV)/.installed: pyproject.toml $(PY)
	@echo "Installing mkcov into $(VENV) …"
	@$(PY) -m pip install --quiet --editable .
	@$(MKCOV) --version
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(PY)
	@echo "Installing mkcov and its development tools into $(VENV) …"
	@$(PY) -m pip install --quiet --editable '.[$(EXTRAS)]'
	@$(MKCOV) --version
	@touch $(VENV)/.installed $@
