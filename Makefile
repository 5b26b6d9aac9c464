# The commands that people use. The build itself is CMake's: see CMakePresets.json.

PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)
# For CMake, such as -DCMAKE_COMPILE_WARNING_AS_ERROR=ON, which .ci/run sets.
CMAKE_OPTIONS ?=

.DEFAULT_GOAL := help
.PHONY: help setup configure build build-programs build-release wheel demo check test fuzz verify-all conformance bench tidy format docs clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Install what is missing: packages, .venv, libonnx, CUDA's headers
	@scripts/setup build

configure: setup
	@cmake --preset $(PRESET) $(CMAKE_OPTIONS) > /dev/null

build: configure ## Build everything into build/release
	@cmake --build $(BUILD) --parallel $(JOBS)

# What users of Dovetail run and link, without tests and what only they need.
build-programs: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target DovetailPrograms

build-release:
	@$(MAKE) build PRESET=release

wheel: build-programs ## Make a wheel of the package for Python in dist
	@scripts/setup wheel
	@.venv/bin/python scripts/make-wheel $(BUILD)

demo: build-programs ## Find the text of a large page on 4 uneven ranks
	@scripts/setup demo
	@scripts/demo $(BUILD)

check: build ## Check the format and run a selection of all tests, in about three minutes
	@scripts/setup test
	@scripts/run-tests --quick $(BUILD)

# ThreadSanitizer's build has no compiler: that of the release build makes its artifacts.
test: build $(if $(filter tsan,$(PRESET)),build-release) ## Run all tests
	@scripts/setup test
	@scripts/run-tests $(BUILD)

fuzz: ## Damage input at random, on the asan build
	@$(MAKE) build PRESET=asan
	@scripts/setup test
	@DOVETAIL_BUILD_DIR=build/asan .venv/bin/python test/e2e/fuzz.py --count 3000 --workers $(JOBS)

verify-all: build ## Run all tests at length: every partition and CPU, 10 000 random operators, 3000 random graphs
	@scripts/setup test
	@DOVETAIL_ALL=1 ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure -R 'RuntimeTests|TransformsTests'
	@DOVETAIL_ALL=1 DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python -m pytest -q -n $(JOBS) test/e2e test/conformance
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_ops.py --count 10000 --workers $(JOBS)
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_graphs.py --count 2000
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/e2e/random_graphs.py --count 1000 --large

conformance: build ## Run ONNX's own node tests alone, whole and split over 3 ranks
	@scripts/setup test
	@DOVETAIL_BUILD_DIR=$(BUILD) .venv/bin/python test/conformance/run.py --workers $(JOBS)

bench: build ## Measure against ONNX Runtime
	@scripts/setup test
	@scripts/bench $(BUILD)

format: ## Format the C++ files that git says are changed
	@{ git diff --name-only --diff-filter=d HEAD -- '*.cpp' '*.h'; git ls-files --others --exclude-standard -- '*.cpp' '*.h'; } \
	  | xargs -r clang-format-22 -i

tidy: configure ## Run clang-tidy on the C++ files that git says are changed, or on FILES
	@scripts/setup tidy
	@scripts/tidy $(BUILD) $(FILES)

docs: setup ## Generate the reference of dialects and passes in docs/generated
	@scripts/generate-docs

clean: ## Remove all builds; .venv and .deps stay
	rm -rf build
