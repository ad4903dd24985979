#!/usr/bin/env python3
"""gpu_agree.py [INCLUDE...]: holds the emulated GPU's fakes of CUDA's runtime, cuBLASLt, NCCL and NVTX against NVIDIA's own headers in the folders
INCLUDE (default: beside nvcc). The fakes' sources are compiled with those headers in place of ours, so that a function of other parameters does
not compile; and every enumerator, constant and size that our headers declare is asserted to be NVIDIA's. Needs a compiler and the
headers, and no GPU; where there are no headers it says so and succeeds.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAKES = ROOT / "tests/support/gpu"
HEADERS = {"cuda_runtime.h": ["cards.cpp", "streams.cpp", "device_memory.cpp", "graphs.cpp", "launches.cpp"], "cuda_profiler_api.h": ["cards.cpp"], "cublasLt.h": ["cublaslt.cpp", "scale_modes.cpp"], "nccl.h": ["nccl.cpp"], "nvtx3/nvToolsExt.h": ["nvtx.cpp"]}
OURS = {"nccl.h": ROOT / "weft/backend/cuda/declared"}  # what a build without NVIDIA's header is compiled with too; others lie beside the fakes
COMPILE = ["-std=c++20", "-fsyntax-only", "-w", "-DNVTX_NO_IMPL", f"-I{ROOT}"]  # NVTX's header would define what the fake does


def enumerators(text):
    """(name, value) of every enumerator and constant, counted where nothing is said."""
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, re.S):
        value = -1
        for one in filter(None, (part.strip() for part in body.split(","))):
            name, _, said = (word.strip() for word in one.partition("="))
            value = int(said, 0) if said else value + 1
            yield name, value
    for line in re.findall(r"inline constexpr \w+ (.*?);", text, re.S):
        for one in line.split(","):
            name, _, said = (word.strip() for word in one.partition("="))
            yield name, int(said, 0)


def sizes(header, text):
    """How large each struct is with our declarations: asked of the compiler."""
    names = re.findall(r"^struct (\w+) \{", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "sizes.cpp"), pathlib.Path(folder, "sizes")
        prints = "".join(f'  std::printf("{name} %zu\\n", sizeof({name}));\n' for name in names)
        source.write_text(f"#include <cstdio>\n#include <{header}>\nint main() {{\n{prints}}}\n")
        subprocess.run(["c++", "-std=c++20", f"-I{FAKES}", *(f"-I{folder}" for folder in OURS.values()), source, "-o", program], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [line.split() for line in said.splitlines()]


def assertions(header):
    text = (OURS.get(header, FAKES) / header).read_text()
    lines = [f"#include <{header}>"]
    lines += [f'static_assert(int({name}) == {value}, "{name} is not {value}");' for name, value in enumerators(text)]
    lines += [f'static_assert(sizeof({name}) == {size}, "{name} is not of {size} bytes");' for name, size in sizes(header, text)]
    return lines


def complaints(includes, header, sources):
    lines = assertions(header)
    for what, text in [(header, "\n".join(lines) + "\n")] + [(name, (FAKES / name).read_text()) for name in sources]:
        run = subprocess.run(["c++", *COMPILE, *(f"-I{folder}" for folder in includes), "-x", "c++", "-"], input=text, capture_output=True, text=True)
        if run.returncode != 0:
            yield f"{what}, compiled with NVIDIA's {header}:\n{run.stderr}"
    print(f"gpu_agree: {header}: {len(lines) - 1} values and sizes, {', '.join(sources)}")


def main():
    nvcc = shutil.which("nvcc", path=f"{os.environ.get('PATH', '')}:{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin")
    includes = [pathlib.Path(word) for word in sys.argv[1:]] or ([pathlib.Path(nvcc).resolve().parent.parent / "include"] if nvcc else [])
    if not any((include / "cuda_runtime.h").exists() for include in includes):
        print("gpu_agree: NVIDIA's headers are not here, so nothing was held against them")
        return 0
    wrong = []
    for header, sources in HEADERS.items():
        if any((include / header).exists() for include in includes):
            wrong += complaints(includes, header, sources)
        else:
            print(f"gpu_agree: {header} is not in {', '.join(map(str, includes))}")
    print("\n".join(wrong) or "gpu_agree: the fakes agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
