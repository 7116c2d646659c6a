# The commands of the project; `make help` lists them. Everything happens in .venv/ and var/.

PYTHON ?= python3
RUN := .venv/bin/python
# Tests and checks keep what they write apart from the data of `make up`.
APART := env -u DATABASE_URL -u REDIS_URL ENV_FILE=tests/settings.env DATA_DIR=var/test/check

.PHONY: help up token install test test-slow test-real test-postgres test-all coverage check format bench eval simulate prove-mutants prove-simulate-mutants prove-live screenshots lock upgrade

help:  ## List the commands
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

up:  ## Install what is missing, then start everything (PORT, DATA_DIR, DATABASE_URL, REDIS_URL)
	@$(PYTHON) tools/up.py

token:  ## Print another API key of the demo workspace
	@told=$$($(RUN) manage.py issue_token --workspace Demo --json) && echo "$$told" | $(RUN) -c 'import json, sys; print(json.loads(sys.stdin.read().splitlines()[-1])["token"])'

install:  ## Write .env where there is none, and bring .venv to requirements-dev.lock
	@$(PYTHON) tools/up.py install requirements-dev.lock

test: install  ## The fast ring: on SQLite, then on PostgreSQL and Redis where they answer
	@$(RUN) tools/suite.py fast

test-slow: install  ## What the fast ring leaves out: faults, fuzzing, many processes
	@$(RUN) tools/suite.py slow

test-real: install  ## Against servers that others wrote: WordPress, a PDS of Bluesky's
	@$(RUN) tools/suite.py real

test-postgres: install  ## Every test that asks a database, on PostgreSQL and Redis
	@$(RUN) tools/suite.py postgres

prove-%: install  ## Heavy proof, written to docs/proofs: kills, never-twice, fuzz, fairness, frames, feeds, first-day, image, clients, properties, simulate, access, pages
	@$(RUN) tools/suite.py prove $*

test-all: test test-slow test-real  ## Everything

coverage: install  ## The fast ring on SQLite with branch coverage
	@$(RUN) tools/suite.py coverage

check: install  ## Lint, format, types, import contracts, migrations, lock files
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(APART) $(RUN) -m mypy
	$(APART) .venv/bin/lint-imports
	$(APART) $(RUN) manage.py makemigrations --check --dry-run
	$(RUN) tools/lock.py check

format: install  ## Let ruff format everything and mend what it can
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

bench: install  ## Every benchmark against its floor, as one table, into benchmarks/results/
	@$(RUN) -m benchmarks

eval: install  ## What the writer finds and the checks stop, over thirty raw items with recorded replies
	@$(RUN) -m tests.evaluation

simulate: install  ## Whole histories in virtual time, by seeds: SEEDS=17 or 1-100, DAYS=30; a seed is a history
	@$(APART) $(RUN) -m tests.simulation

prove-mutants: install  ## What the fast tests find of small faults in the code, into docs/proofs/
	@$(RUN) -m tools.mutation_test --chosen-at 4431311 --into docs/proofs/mutants.txt

prove-simulate-mutants: install  ## The same of 200 histories, in publishing, dispatch, credits and deliveries
	@$(RUN) -m tools.mutation_test --simulate --count 40 --into docs/proofs/simulate-mutants.txt

prove-live: install  ## What the six types of sources bring from the real network, into docs/proofs/
	@$(RUN) -m tools.prove_sources

screenshots: install  ## The README's pictures, taken of a demo of its own in Chromium
	@$(RUN) tools/screenshots.py

lock: install  ## Write the lock files anew from pyproject.toml
	$(RUN) tools/lock.py write

upgrade: install  ## Write the lock files anew with the newest versions that pyproject.toml allows, and say what moved
	$(RUN) tools/lock.py upgrade
