# Everything a developer or a reader runs. Needs Python 3.11 or later, make and the package registries.

PYTHON ?=
ARGS   ?=

venv        := .venv
venv_bench  := .venv-bench
installed   := $(venv)/.installed
benchable   := $(venv_bench)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check bench soak clean
.DELETE_ON_ERROR:

help: ## what can be made (this list)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(installed) ## run the first example
	@$(venv)/bin/python examples/first_run.py

test: $(installed) ## run the tests; pytest's own options go in ARGS="..."
	@$(venv)/bin/python -m pytest $(ARGS)

check: $(installed) ## formatting, lint, types, direction of imports
	@$(venv)/bin/ruff format --check --quiet --diff .
	@$(venv)/bin/ruff check --quiet .
	@$(venv)/bin/pyright --warnings
	@PYTHONPATH=src $(venv)/bin/lint-imports --no-cache --no-logo

bench: $(benchable) ## measure side by side with the peers; options in ARGS="..."
	@$(venv_bench)/bin/python -m benchmarks $(ARGS)

soak: $(installed) ## run the tests that take minutes
	@$(venv)/bin/python -m pytest -m soak -o faulthandler_timeout=3600 $(ARGS)

clean: ## remove all that was made here
	@rm -rf $(venv) $(venv_bench) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Environments are built once, and again when what they are built from changes. $(call environment,FOLDER) makes an
# empty one with the first Python that is new enough, or keeps the one that stands.
define environment
@if ! $(1)/bin/python $(new_enough) 2>/dev/null; then \
  for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
    if $$python $(new_enough) 2>/dev/null; then found=$$python; break; fi; \
  done; \
  if [ -z "$$found" ]; then \
    echo "keepstep needs Python 3.11 or later and found none; name one with: make PYTHON=/path/to/python3" >&2; exit 1; \
  fi; \
  if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
    echo "this Python cannot make environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
  fi; \
  echo "making $(1) with $$($$found --version)"; \
  $$found -m venv --clear $(1); \
fi
@$(1)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt pip
endef
new_enough := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

# $(call install,FOLDER,GROUP,CONSTRAINTS)
install = @$(1)/bin/python -m pip install -qq $(foreach file,$(3),-c $(file)) --build-constraint constraints.txt --group $(2) -e .

$(installed): pyproject.toml constraints.txt
	$(call environment,$(venv))
	$(call install,$(venv),dev,constraints.txt)
	@touch $@

$(benchable): pyproject.toml constraints.txt benchmarks/constraints.txt
	$(call environment,$(venv_bench))
	$(call install,$(venv_bench),bench,constraints.txt benchmarks/constraints.txt)
	@touch $@
