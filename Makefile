# The commands of weft. Each installs what is missing on Debian 12, configures and builds what it needs, then does its work.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SILENT:
JOBS ?= $(shell nproc)

help: ## this list
	echo "make TARGET"
	sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install the Debian packages that are missing
	tools/setup build

configure: setup
	echo "make: configuring build/release"
	cmake --preset release

build: configure ## build everything into build/release
	echo "make: building with $(JOBS) jobs"
	cmake --build --preset release -j $(JOBS)

test: build ## build and run every test
	echo "make: running the tests, $(JOBS) at a time"
	ctest --preset all -j $(JOBS)

oracle: build ## compare with the originals themselves (installed by pip into build/oracle)
	python3 -m venv build/oracle
	build/oracle/bin/pip install --quiet tensorboard
	build/oracle/bin/python tests/oracle/read_tensorboard.py build/release/tests/report/tensorboard_sample

lint: ## check layout, names, floors, lengths and manners of the source
	tools/setup build check
	tools/lint

format: ## lay the source out as .clang-format says
	tools/setup check
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean: ## remove everything that was built
	rm -rf build

.PHONY: help setup configure build test oracle lint format clean
