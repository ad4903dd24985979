#!/usr/bin/env python3
"""gpu_kernels.py [--write] [ARCH...] [SOURCE...]: compiles every .cu of weft/backend/cuda, or those named, for GPUs and holds what the
compiler made of each kernel against the newest bench/results/gpu_kernels_DATE.md. No kernel may spill, no product of warpgroups may wait
for the one before it, and nothing may get worse: registers, bytes of local and of shared memory may not grow, nor narrow accesses become
more; occupancy, tensor-core instructions and accesses of 16 bytes may not become fewer. A kernel that is not in the table fails, and one
that is there alone. --write writes the table of today, in which what is not named keeps its rows. Needs nvcc, and no GPU; where there is
no nvcc it says so and succeeds. Without nvdisasm beside it, or on the path, instructions are not looked at, and the table cannot be
written.

A source may begin with a line "// nvcc: OPTIONS" of its own, with "// only: ARCH" where its kernels are for one kind of GPU, and with
"// apart: ARCH" where it has code of its own for a kind (CODE_OF). Results are kept by what was compiled and by which nvcc, beside
tidy.py's marks, so that a kernel that nobody changed is not compiled again, in a fresh clone either. One that nobody asked for in sixty days goes.
"""
import collections
import concurrent.futures
import datetime
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import tidy

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUDA = ROOT / "weft/backend/cuda"
RESULTS = ROOT / "bench/results"
KEPT = tidy.marks_folder().with_name("weft-gpu-kernels")
OPTIONS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-diag-suppress=20012", "-Xptxas", "-v", "-fatbin"]

# Of a multiprocessor: bytes of shared memory that blocks divide. All of these hold 64 warps, 32 blocks and 65536 registers, a quarter of
# the warps and registers to a scheduler (CUDA C++ programming guide, compute capabilities).
SHARED = {"sm_80": 164 << 10, "sm_90a": 228 << 10, "sm_100a": 228 << 10}
# Whose PTX code is made of. That of compute_80 becomes for sm_90a, to the instruction, what that of compute_90a would, in half the time;
# not so for sm_100a. weft/backend/cuda.cmake compiles the program alike.
CODE_OF = {"sm_80": "compute_80", "sm_90a": "compute_80", "sm_100a": "compute_100a"}
WARPS, BLOCKS, REGISTERS, SCHEDULERS = 64, 32, 65536, 4
BLOCK_OVERHEAD = 1 << 10  # shared memory that the system takes of each block

# A column, and whether more of it is better (1) or worse (-1). What is spilled must be 0.
COLUMNS = {"threads": 0, "registers": -1, "spilled": 0, "local": -1, "shared": -1, "occupancy": 1, "tensor": 1, "meanwhile": 1, "wide": 1, "narrow": -1}
OF_INSTRUCTIONS = ["tensor", "meanwhile", "wide", "narrow"]
HEAD = """# What nvcc makes of the GPU's kernels

By `tools/gpu_kernels.py --write`, from {sources} sources with {nvcc}. **It needs no GPU.** The same command without `--write` fails where a
number of this table got worse.

- threads: the most of a block (launch bounds). registers: of a thread. spilled: bytes of registers that went to memory, both ways.
- local: bytes of a thread's stack. shared: bytes of a block's memory, those it is launched with included.
- occupancy: warps that a multiprocessor can hold, in per cent of 64, from the columns before it.
- tensor: tensor-core instructions in the code. meanwhile: powers that threads compute while a warpgroup's products go on. wide, narrow: accesses to global and shared memory of 16 bytes, and of fewer.

| GPU | source | kernel | {columns} |
|---|---|---|{bars}
"""


def tool(name):
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin")
    return path and pathlib.Path(path)


def line_of(source, word):
    """What a source says behind "// WORD: ", which must be a line's beginning."""
    text = source.read_text()
    said = re.search(rf"^// {word}: (.*)$", text, re.M)
    if not said and re.search(rf"^//.*\b{word}: ", text, re.M):
        sys.exit(f"gpu_kernels: {source.name}: '{word}:' must begin a line of its own, or nobody reads it")
    return said[1] if said else ""


def options_of(source):
    return OPTIONS + line_of(source, "nvcc").split()


def fits(source, arch):
    """Whether a source has kernels for a GPU."""
    return line_of(source, "only") in ("", arch)


def compilations(sources, archs):
    """(source, whose PTX, the GPUs that it is for)"""
    for source in sources:
        own, kinds = (line_of(source, "only"), line_of(source, "apart")), collections.defaultdict(list)
        for arch in archs:
            if fits(source, arch):
                kinds[arch.replace("sm_", "compute_") if arch in own else CODE_OF[arch]].append(arch)
        yield from ((source, ptx, of) for ptx, of in kinds.items())


def seen_by(path, seen):
    """A source and all of ours that it includes."""
    if path not in seen:
        seen.add(path)
        for name in re.findall(r'^#include [<"]([^">]+)[">]', path.read_text(), re.M):
            for found in (CUDA / "native" / name, ROOT / name):
                if found.is_file():
                    seen_by(found, seen)
    return seen


def version_of(nvcc):
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"V([\d.]+)", said)[1]


def compiled(nvcc, source, ptx, archs):
    """A folder with what ptxas said, the PTX and the code for each GPU."""
    options = [*options_of(source), "-gencode", f"arch={ptx},code=[{','.join(archs)}]"]
    digest = hashlib.sha256(" ".join([version_of(nvcc), *options]).encode())
    for path in sorted(seen_by(source, set())):
        digest.update(path.read_bytes())
    kept = KEPT / f"{source.stem}.{ptx}.{digest.hexdigest()[:16]}"
    said = kept / "said.txt"
    if said.exists():
        said.touch()
        return kept
    kept.mkdir(parents=True, exist_ok=True)
    run = subprocess.run([nvcc, *options, "-keep", "-keep-dir", kept, f"-I{CUDA / 'native'}", f"-I{ROOT}", "-o", kept / "code.fatbin", source],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"gpu_kernels: {source.name} for {' and '.join(archs)}:\n{run.stdout}{run.stderr}")
    for path in kept.iterdir():
        if path.suffix == ".ptx":
            path.rename(kept / "code.ptx")
        elif path.suffix == ".cubin":  # where there are several it has the kind in its name
            path.rename(kept / (f"{archs[0]}.cubin" if len(archs) == 1 else path.name.removeprefix(f"{source.stem}.")))
        else:
            path.unlink()
    said.write_text(run.stderr)
    return kept


def forget():
    """Removes what nobody asked for in a long time."""
    old = time.time() - tidy.KEPT_DAYS * 86400
    for said in KEPT.glob("*/said.txt"):
        if said.stat().st_mtime < old:
            shutil.rmtree(said.parent)


def occupancy(arch, threads, registers, shared):
    """Per cent of a multiprocessor's warps that can be there at once."""
    warps = -(-threads // 32)
    of_warp = -(-registers * 32 // 256) * 256
    by_registers = REGISTERS // SCHEDULERS // of_warp * SCHEDULERS // warps
    by_shared = SHARED[arch] // (-(-(shared + BLOCK_OVERHEAD) // 128) * 128)
    return min(BLOCKS, WARPS // warps, by_registers, by_shared) * warps * 100 // WARPS


def plain(mangled):
    """Names as they are written, without what encloses them and what they take."""
    told = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.splitlines()
    for name in told:
        short = re.sub(r"weft::|cuda::|backward_by_tiles::|\(anonymous namespace\)::|^void |\((?:int|bool)\)", "", name)
        yield re.sub(r"\((?!.*>).*$|(?<=>)\(.*$", "", short).replace(" ", "")


def parts(text, begins):
    """(name, text) of what lies between one match and the next."""
    hits = list(re.finditer(begins, text, re.M))
    for hit, after in zip(hits, [*hits[1:], None]):
        yield hit[1], text[hit.end():after.start() if after else len(text)]


def instructions(nvdisasm, cubin):
    """kernel -> its counts of OF_INSTRUCTIONS."""
    code = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    out = {}
    for name, lines in parts(code, r"^\s*\.section\s+\.text\.([^,\s]+)"):
        accesses = re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@\S+ +)?((?:LD|ST|LDG|STG|LDS|STS|LDGSTS)(?:\.\S+)?) ", lines, re.M)
        wide = sum(".128" in access for access in accesses)
        tensor = len(re.findall(r"\b(?:[HBI]|HG)MMA\.", lines))
        meanwhile = sum(part.count("MUFU.EX2") for part in re.findall(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x1 (.*?)WARPGROUP\.DEPBAR\.LE gsb0, 0x0 ", lines, re.S))
        out[name] = dict(zip(OF_INSTRUCTIONS, (tensor, meanwhile, wide, len(accesses) - wide)))
    return out


def told(kept, arch, nvdisasm):
    """kernel, mangled -> its numbers"""
    out = {}
    said, ptx = (kept / "said.txt").read_text(), dict(parts((kept / "code.ptx").read_text(), r"^(?:\.visible )?\.entry (\w+)"))
    counts = instructions(nvdisasm, kept / f"{arch}.cubin") if nvdisasm else {}
    for entry, words in parts(said, r"Compiling entry function '(\S+' for '\S+)'"):
        name, kind = entry.split("' for '")
        if kind != arch:
            continue
        local, *spilled = (int(x) for x in re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", words).groups())
        registers, fixed = int(re.search(r"Used (\d+) registers", words)[1]), re.search(r"(\d+) bytes smem", words)
        threads = int(re.search(r"\.maxntid (\d+)", ptx[name])[1])
        launched = [int(x) for x in re.findall(r"// shared (\d+)", ptx[name])]
        shared = max(launched, default=0) + (int(fixed[1]) if fixed else 0)
        out[name] = {"threads": threads, "registers": registers, "spilled": sum(spilled), "local": local, "shared": shared,
                     "occupancy": occupancy(arch, threads, registers, shared)} | counts.get(name, {})
    return out


def must_overlap(said, source, archs):
    """Fails where ptxas waits for each product of a warpgroup by itself, which it says of a function by name and does not refuse."""
    waits = sorted(set(re.findall(r"wgmma\.mma_async instructions are serialized due to (.*?) in the function", said)))
    if waits:
        sys.exit(f"gpu_kernels: {source.name} for {' and '.join(archs)}: products of warpgroups wait for each other, by {', '.join(waits)}")


def found_now(nvcc, nvdisasm, jobs):
    """(arch, source, kernel) -> its numbers"""
    out = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (source, _, archs), kept in zip(jobs, pool.map(lambda job: compiled(nvcc, *job), jobs)):
            must_overlap((kept / "said.txt").read_text(), source, archs)
            for arch in archs:
                kernels = told(kept, arch, nvdisasm)
                out |= {(arch, source.name, name): numbers for name, numbers in zip(plain(kernels), kernels.values())}
    return out


def newest():
    return max(RESULTS.glob("gpu_kernels_*.md"), default=None)


def table(path):
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in path.read_text().splitlines() if line.startswith("| sm_")]
    return {tuple(row[:3]): dict(zip(COLUMNS, map(int, row[3:]))) for row in cells}


def rows(now):
    return "".join(f"| {' | '.join(key)} | {' | '.join(str(numbers[column]) for column in COLUMNS)} |\n" for key, numbers in sorted(now.items()))


def head(nvcc, now):
    sources = len({key[1] for key in now})
    return HEAD.format(sources=sources, nvcc=f"nvcc {version_of(nvcc)}", columns=" | ".join(COLUMNS), bars="---|" * len(COLUMNS))


def complaints(now, before, where):
    for key, numbers in sorted(now.items()):
        if numbers["spilled"] > 0:
            yield f"{' '.join(key)}: {numbers['spilled']} bytes of registers are spilled, and none may be"
        if key not in before:
            yield f"{' '.join(key)} is not in {where}: tools/gpu_kernels.py --write"
            continue
        for column, value in numbers.items():
            was = before[key][column]
            if (value - was) * COLUMNS[column] < 0:
                yield f"{' '.join(key)}: {column} is {value}, and {where} has {was}"
    for key in sorted(before.keys() - now.keys()):
        yield f"{' '.join(key)} is in {where} alone: tools/gpu_kernels.py --write"


def main():
    nvcc, nvdisasm = tool("nvcc"), tool("nvdisasm")
    if not nvcc:
        print("gpu_kernels: there is no nvcc, so nothing was compiled")
        return 0
    named = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    archs = [arch for arch in SHARED if arch in named] or SHARED
    sources = sorted(CUDA / name for name in named if name not in SHARED) or sorted(CUDA.glob("*.cu"))
    jobs = list(compilations(sources, archs))
    if "--write" in sys.argv and not nvdisasm:
        sys.exit("gpu_kernels: there is no nvdisasm, and the table has instructions")
    path = newest()
    before, now = table(path) if path else {}, found_now(nvcc, nvdisasm, jobs)
    forget()
    asked = {(arch, source.name) for source, _, of in jobs for arch in of}
    others = {key: numbers for key, numbers in before.items() if key[:2] not in asked and (CUDA / key[1]).exists()}
    if "--write" in sys.argv:
        (RESULTS / f"gpu_kernels_{datetime.date.today()}.md").write_text(head(nvcc, others | now) + rows(others | now))
        return 0
    before = {key: numbers for key, numbers in before.items() if key not in others}
    wrong = list(complaints(now, before, path.relative_to(ROOT) if path else "bench/results"))
    uncounted = "" if nvdisasm else "; there is no nvdisasm, so instructions were not counted"
    print("\n".join(wrong) or f"gpu_kernels: {len(now)} kernels, none spills, nothing worse{uncounted}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
