# Two commands: `make demo` and `make test`. Each sets up its own virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo studio test test-scale reproduce reproduce-quick \
  bench-diffgen bench-cdiffgen bench-diffmulti bench-dpcocgen bench-privbayes bench-comparison bench-syntactic bench-confidence bench-queries bench-answers bench-marginals bench-speed bench-memory bench-scale bench-studio \
  audit fire fuzz smoke dist lock pip-audit docs site clean

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

$(VENV)/.studio: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[studio]'
	@touch $@ $(VENV)/.base

# The studio on the bundled table, in demo/; PORT=8000 for a port of your own.
studio: $(VENV)/.studio
	@mkdir -p demo && cd demo && ../$(BIN)/sfumato studio adult $(if $(PORT),--port $(PORT))

test: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks fuzz
	$(BIN)/ruff format --check src tests benchmarks fuzz
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

reproduce: $(VENV)/.dev
	$(BIN)/sfumato reproduce all --out docs/reproduction

reproduce-quick: $(VENV)/.dev
	$(BIN)/sfumato reproduce all --quick --out reproduction

$(VENV)/.scale: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,spark]'
	@touch $@ $(VENV)/.dev $(VENV)/.base

# What needs Spark and Java, or much memory and disk: a cluster of two workers on this machine is started and stopped.
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
test-scale: $(VENV)/.scale
	@if command -v $(JAVA) > /dev/null; then \
	  SFUMATO_TEST_SPARK=1 PYTHONPATH=tests/scale $(BIN)/python -m pytest tests/scale tests/test_engines.py tests/test_engine_releases.py; \
	else \
	  echo "no Java is to be found: the tests on Spark are left out"; \
	  $(BIN)/python -m pytest tests/scale/test_local_limits.py tests/scale/test_local_room.py; \
	fi

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

# The others lie in environments of their own; one that cannot be installed has a row that says so.
PEERS := .venv-peers
bench-privbayes: $(VENV)/.dev
	for peer in DataSynthesizer dpmm; do \
	  test -d $(PEERS)/$$peer || { $(PYTHON) -m venv $(PEERS)/$$peer && $(PEERS)/$$peer/bin/pip install --quiet $$peer; } || rm -rf $(PEERS)/$$peer; \
	done
	$(BIN)/python benchmarks/privbayes.py --peers $(PEERS)

# The tables of docs/methods.md; the census excerpt is no part of the repository.
bench-comparison: $(VENV)/.dev
	$(BIN)/python benchmarks/comparison.py adult --runs 5
	$(BIN)/python benchmarks/comparison.py adult --few --epsilons 1 --runs 5 --measures marginals,queries,cost
	$(BIN)/python benchmarks/comparison.py census --epsilons 1 --runs 5 --measures marginals,queries,cost
	$(BIN)/python benchmarks/comparison.py census --few --epsilons 1 --runs 5 --measures marginals,queries,cost

bench-queries: $(VENV)/.dev
	$(BIN)/python benchmarks/queries.py

bench-answers: $(VENV)/.dev
	$(BIN)/python benchmarks/answers.py --small

bench-marginals: $(VENV)/.dev
	$(BIN)/python -W ignore benchmarks/marginals.py --ablations

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

bench-studio: $(VENV)/.dev
	$(BIN)/python benchmarks/studio.py

audit: $(VENV)/.dev
	$(BIN)/python tests/large_audit.py

bench-scale: $(VENV)/.scale
	$(BIN)/python benchmarks/scale.py

docs: $(VENV)/.dev
	$(BIN)/python tests/documents.py > docs/cli.md
	$(BIN)/python tests/documents.py README.md docs/methods.md
	$(BIN)/python benchmarks/house.py

# The documentation site, in site/; warnings, such as links that lead nowhere, are errors.
site: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The library as its users have it: nothing but the run-time dependencies, installed and not linked.
SMOKE := .venv-smoke
smoke:
	@rm -rf $(SMOKE) && $(PYTHON) -m venv $(SMOKE)
	$(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check .
	@cd $(SMOKE) && for command in \
	  "publish adult --epsilon 1 --specializations 5 --out release" \
	  "query release age<30" \
	  "sample release --rows 100 --out sample.csv" \
	  "inspect release" \
	  "verify release --ledger adult.ledger"; \
	do echo "sfumato $$command" && bin/sfumato $$command > said.txt || { cat said.txt; exit 1; }; done
	@cat $(SMOKE)/said.txt && rm -rf $(SMOKE)

# Wheel and source archive, in dist/.
dist: $(VENV)/.dev
	@rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --outdir dist .

# Kills, full disks, jumping clocks and older ledgers: ROUNDS faults, and what was survived.
ROUNDS ?= 300
fire: $(VENV)/.dev
	$(BIN)/python -W ignore tests/fire.py $(ROUNDS)

# Every reader of other people's files, SECONDS each.
SECONDS ?= 60
TARGETS ?= schema_file taxonomy_file code_book condition question_file sql record manifest statistics_file rules_file ledger_file release_file
fuzz: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	@for target in $(TARGETS); do $(BIN)/python fuzz/fuzz.py $$target $(SECONDS) 2> fuzz/log.txt || { cat fuzz/log.txt; exit 1; }; done

# The versions that we develop with, with digests, for every platform. `pip install --require-hashes -r` takes it.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-header --no-emit-index-url --no-annotate \
	  --generate-hashes --upgrade pyproject.toml -o requirements-dev.lock

pip-audit: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --require-hashes -r requirements-dev.lock

clean:
	rm -rf $(VENV) .venv-peers $(SMOKE) demo dist site fuzz/findings fuzz/log.txt
