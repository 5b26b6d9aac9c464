# The commands that people use. The build itself is CMake's: see CMakePresets.json.

PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)

.DEFAULT_GOAL := help
.PHONY: help setup configure build build-release demo test fuzz verify-all conformance bench docs clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Install what is missing: packages, .venv, libonnx, CUDA's headers
	@scripts/setup build

configure: setup
	@cmake --preset $(PRESET) > /dev/null

build: configure ## Build everything into build/release
	@cmake --build $(BUILD) --parallel $(JOBS)

build-release:
	@$(MAKE) build PRESET=release

demo: build ## Find the text of a large page on 4 uneven ranks
	@scripts/setup demo
	@scripts/demo $(BUILD)

# ThreadSanitizer's build has no compiler: that of the release build makes its artifacts.
test: build $(if $(filter tsan,$(PRESET)),build-release) ## Run all tests
	@scripts/setup test
	@scripts/run-tests $(BUILD)

fuzz: ## Damage input at random, on the asan build
	@$(MAKE) build PRESET=asan
	@scripts/setup test
	@DOVETAIL_BUILD_DIR=build/asan .venv/bin/python test/e2e/fuzz.py --count 3000 --workers $(JOBS)

verify-all: build ## Run the tests of models on every partition, 10 000 random operators and 3000 random graphs
	@scripts/setup test
	@DOVETAIL_ALL=1 DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python -m pytest -q -n $(JOBS) test/e2e/test_models.py test/e2e/test_exchanges.py
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_ops.py --count 10000 --workers $(JOBS)
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_graphs.py --count 2000
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_graphs.py --count 1000 --large

conformance: build ## Run ONNX's own node tests alone, whole and split over 3 ranks
	@scripts/setup test
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/conformance/run.py --workers $(JOBS)

bench: build ## Measure against ONNX Runtime
	@scripts/setup test
	@scripts/bench $(BUILD)

docs: setup ## Generate the reference of dialects and passes in docs/generated
	@scripts/generate-docs

clean: ## Remove all builds; .venv and .deps stay
	rm -rf build
