# The commands that people use. The build itself is CMake's: see CMakePresets.json.

PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)

.DEFAULT_GOAL := help
.PHONY: help setup configure build demo test bench docs clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## Install what is missing: packages, .venv, libonnx
	@scripts/setup build

configure: setup
	@cmake --preset $(PRESET) > /dev/null

build: configure ## Build everything into build/release
	@cmake --build $(BUILD) --parallel $(JOBS)

demo: build ## Find the text of a large page on 4 uneven ranks
	@scripts/setup demo
	@scripts/demo $(BUILD)

test: build ## Run all tests
	@scripts/setup test
	@scripts/run-tests $(BUILD)

bench: build ## Measure against ONNX Runtime
	@scripts/setup test
	@scripts/bench $(BUILD)

docs: setup ## Generate the reference of dialects and passes in docs/generated
	@scripts/generate-docs

clean: ## Remove all builds; .venv and .deps stay
	rm -rf build
