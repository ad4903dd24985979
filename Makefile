# The commands of weft. Each installs what is missing on Debian 12, configures and builds what it needs, then does its work.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SILENT:
JOBS ?= $(shell nproc)
# Some tests wait for clocks and for other programs, and leave their processor to one more.
TESTS ?= $(shell expr $(JOBS) \* 3 / 2)
LOOPS ?= all

help: ## this list
	echo "make TARGET"
	sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## install the Debian packages that are missing
	tools/setup program build

configure: setup
	echo "make: configuring build/release"
	cmake --preset release

build: configure ## build everything into build/release
	echo "make: building with $(JOBS) jobs"
	cmake --build --preset release -j $(JOBS)

test: build ## build and run every test
	echo "make: running the tests, $(TESTS) at a time"
	ctest --preset all -j $(TESTS)

fuzz-layouts: configure ## compare 2000 random layouts with one rank
	cmake --build --preset release --target equal_tests -j $(JOBS)
	WEFT_LAYOUTS=2000 build/release/tests/equal/equal_tests --gtest_filter='RandomLayouts.*'

demo: LOOPS = here
demo: program ## train a small GPT on this project's own text, in a minute
	examples/demo.sh build/program/weft

# The demo builds the loops of this processor alone; whatever else wants the program adds those of the others.
program: ## build the program alone, into build/program
	tools/setup program
	echo "make: building weft with $(JOBS) jobs"
	cmake --preset program -DWEFT_LOOPS=$(LOOPS)
	cmake --build --preset program --target weft_pages -j $(JOBS)

install: program ## put the program, its manual page, completions and examples below PREFIX= (/usr/local)
	cmake --install build/program --prefix "$(or $(PREFIX),/usr/local)"

package: program ## make a Debian package of it in build/package
	tools/setup package
	cmake --preset program >/dev/null
	cpack --config build/program/CPackConfig.cmake -B build/package
	rm -rf build/package/_CPack_Packages

bench: configure ## build the benchmarks and run each; results in build/bench
	cmake --build --preset release --target benchmarks -j $(JOBS)
	mkdir -p build/bench
	for program in build/release/bench/*/bench_*; do \
	  [ -x "$$program" ] || continue; \
	  echo "make: $$program"; \
	  "$$program" | tee "build/bench/$$(basename "$$program").txt"; \
	done

soak: configure ## kill training a thousand times and compare with a run that nobody killed; an hour (ROUNDS=, SECONDS=)
	cmake --build --preset release --target weft -j $(JOBS)
	python3 tests/train/kill.py --weft build/release/weft --rounds $(or $(ROUNDS),1000) --seconds $(or $(SECONDS),1000000000) --seed $$RANDOM
	python3 tests/launch/soak.py --weft build/release/weft --kills $(or $(ROUNDS),1000) --seconds $(or $(SECONDS),1000000000) --launches 1000 --seed $$RANDOM

slurm: configure ## train across two nodes of a real Slurm on this machine (as root, with slurm-wlm)
	cmake --build --preset release --target weft -j $(JOBS)
	python3 tests/launch/slurm_test.py --weft build/release/weft --script deploy/slurm/train.sbatch

oracle: build ## compare with the originals themselves (installed by pip into build/oracle; MEGATRON=DIR, LLAMA_CPP=DIR: checkouts, for what their packages leave out)
	python3 -m venv build/oracle
	build/oracle/bin/pip install --quiet tensorboard tokenizers transformers accelerate jinja2 tiktoken sentencepiece torch megatron-core==0.16.1 kubernetes-validate setuptools wheel hjson msgpack einops psutil py-cpuinfo pydantic ninja
	build/oracle/bin/python tests/oracle/read_tensorboard.py build/release/tests/report/tensorboard_sample
	DS_BUILD_OPS=0 build/oracle/bin/pip install --quiet --no-build-isolation --no-deps deepspeed==0.19.8
	build/oracle/bin/python tests/oracle/text.py --weft build/release/weft
	build/oracle/bin/python tests/oracle/chat.py --weft build/release/weft
	build/oracle/bin/python tests/oracle/data.py build/release/weft
	build/oracle/bin/python tests/oracle/data_odd.py build/release/weft
	build/oracle/bin/python tests/oracle/masked.py build/release/weft
	build/oracle/bin/python tests/oracle/difficulty.py build/release/weft
	$(if $(MEGATRON),build/oracle/bin/pip install --quiet datasets && build/oracle/bin/python tests/oracle/sft.py build/release/weft --megatron $(MEGATRON))
	build/oracle/bin/python tests/oracle/exchange.py --weft build/release/weft
	build/oracle/bin/python tests/oracle/deepspeed_checkpoints.py --weft build/release/weft
	build/oracle/bin/python tests/oracle/jobs.py build/release/weft
	build/oracle/bin/python tests/oracle/train.py build/release/weft
	build/oracle/bin/python tests/oracle/train_encoders.py build/release/weft
	build/oracle/bin/python tests/oracle/train_sft.py build/release/weft
	build/oracle/bin/python tests/oracle/residual.py build/release/weft
	build/oracle/bin/python tests/oracle/qk_clip.py build/release/weft
	build/oracle/bin/python tests/oracle/megatron_states.py build/release/weft
	build/oracle/bin/python tests/oracle/megatron_release.py build/release/weft
	build/oracle/bin/python tests/oracle/megatron_families.py build/release/weft
	build/oracle/bin/pip install --quiet --no-deps gguf diskcache llama-cpp-python==0.3.36
	build/oracle/bin/python tests/oracle/gguf.py --weft build/release/weft $(if $(LLAMA_CPP),--llama-cpp $(LLAMA_CPP))
	build/oracle/bin/python tests/oracle/gguf_packed.py --weft build/release/weft
	build/oracle/bin/python tests/oracle/f8_blocks.py

lint: ## check layout, names, floors, lengths and manners of the source
	tools/setup program build check
	tools/lint

format: ## lay the source out as .clang-format says
	tools/setup check
	git ls-files '*.h' '*.cpp' '*.cu' | xargs clang-format -i

clean: ## remove everything that was built
	rm -rf build

.PHONY: help setup configure build test fuzz-layouts demo program install package bench soak slurm oracle lint format clean
