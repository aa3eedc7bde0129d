# Two commands: `make demo` and `make test`. Each sets up its own virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test reproduce reproduce-quick bench-diffgen bench-cdiffgen bench-diffmulti bench-dpcocgen bench-queries bench-speed bench-memory bench-syntactic bench-confidence audit docs clean

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[pictures]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base
	@rm -rf demo && mkdir demo
	$(BIN)/sfumato publish adult --method diffgen --epsilon 1 --specializations 10 --ledger demo/adult.ledger --out demo/release
	@echo
	@$(BIN)/sfumato inspect demo/release
	@echo
	@echo "Three range counts, with error bars for the noise"
	$(BIN)/sfumato query demo/release "age between 30 and 40 and sex = 'Female'"
	$(BIN)/sfumato query demo/release "marital_status = 'Married' and income = '>50K'"
	$(BIN)/sfumato query demo/release "education_num >= 13 and hours_per_week > 40"
	@echo
	@echo "One page about all of it, to open in a browser"
	$(BIN)/sfumato report demo/release --out demo/report.html

test: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

reproduce: $(VENV)/.dev
	$(BIN)/sfumato reproduce all --out docs/reproduction

reproduce-quick: $(VENV)/.dev
	$(BIN)/sfumato reproduce all --quick --out reproduction

bench-diffgen: $(VENV)/.dev
	$(BIN)/sfumato reproduce diffgen
	$(BIN)/python benchmarks/diffgen.py

bench-cdiffgen: $(VENV)/.dev
	$(BIN)/sfumato reproduce cdiffgen
	$(BIN)/python benchmarks/cdiffgen.py

bench-diffmulti: $(VENV)/.dev
	$(BIN)/sfumato reproduce diffmulti
	$(BIN)/python benchmarks/diffmulti.py

bench-dpcocgen: $(VENV)/.dev
	$(BIN)/sfumato reproduce dpcocgen
	$(BIN)/python benchmarks/dpcocgen.py

bench-queries: $(VENV)/.dev
	$(BIN)/python benchmarks/queries.py

bench-speed: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

bench-memory: $(VENV)/.dev
	$(BIN)/python benchmarks/memory_engine.py

# anonypy needs an older pandas, hence an environment of its own.
bench-syntactic:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' 'anonypy>=0.2' 'pandas<3'
	.venv-peers/bin/python benchmarks/syntactic.py

bench-confidence: $(VENV)/.dev
	$(BIN)/sfumato reproduce confidence

audit: $(VENV)/.dev
	$(BIN)/python tests/large_audit.py

docs: $(VENV)/.dev
	$(BIN)/python -m sfumato.cli.reference > docs/cli.md

clean:
	rm -rf $(VENV) .venv-peers demo
