#!/usr/bin/env python3
"""The floors of the house: which room may include which. Fails with the first include that climbs."""
import pathlib
import re
import sys

MAY_SEE = {  # room -> rooms below it that it may include
    "base": [],
    "tensor": ["base"],
    "text": ["base"],
    "report": ["base"],
    "ops": ["base", "tensor"],
    "backend": ["base", "tensor"],
    "comm": ["base", "tensor"],
    "data": ["base", "tensor", "text"],
    "mesh": ["base", "tensor", "comm"],
    "launch": ["base"],
    "jobs": ["base"],
    "checkpoint": ["base", "tensor", "comm", "mesh"],
    "nn": ["base", "tensor", "ops", "comm", "mesh"],
    "model": ["base", "tensor", "ops", "comm", "data", "mesh", "nn"],
    "pipe": ["base", "tensor", "comm", "mesh", "nn"],
    "optim": ["base", "tensor", "ops", "comm", "mesh", "nn"],
    "exchange": ["base", "tensor", "ops", "comm", "mesh", "checkpoint", "nn", "model"],
    "generate": ["base", "tensor", "text", "ops", "comm", "mesh", "checkpoint", "nn", "model", "pipe"],
}
MAY_SEE["train"] = [room for room in MAY_SEE if room not in ("backend", "launch", "jobs", "generate")]
MAY_SEE["plan"] = [room for room in MAY_SEE if room not in ("backend", "launch", "jobs")]
MAY_SEE["cli"] = [*MAY_SEE]

# Headers of a C library that one room hides: header -> folder that may include it.
HOMES = {
    "dnnl.hpp": "weft/backend/cpu/onednn/",
    "dnnl.h": "weft/backend/cpu/onednn/",
    "mpi.h": "weft/comm/",
    "nccl.h": "weft/backend/cuda/",
    "cublasLt.h": "weft/backend/cuda/",
    "cudnn.h": "weft/backend/cuda/",
    "cuda_runtime.h": "weft/backend/cuda/",
    "sentencepiece_processor.h": "weft/text/",
    "pcre2.h": "weft/text/",
    "utf8proc.h": "weft/text/",
    "yaml-cpp/yaml.h": "weft/base/",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?:weft/([a-z_0-9]+)/[^">]*|([^">]+))[">]')


def climbs(root):
    """Every include that its room may not have."""
    for path in sorted((root / "weft").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        name = path.relative_to(root).as_posix()
        room = path.relative_to(root / "weft").parts[0]
        if room not in MAY_SEE:
            yield f"{name}:1: {room} is no room of the house: give it its line in tools/floors.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not (m := INCLUDE.match(line)):
                continue
            if m[1] and m[1] != room and m[1] not in MAY_SEE[room]:
                yield f"{name}:{number}: {room} may not include {m[1]}"
            home = HOMES.get(m[2])
            if home and not (name.startswith(home) and (path.suffix == ".cpp" or "backend" in home)):
                yield f"{name}:{number}: {m[2]} belongs in the .cpp files of {home}"


def circle():
    """The table itself must be a set of floors: no room may be reached from below."""
    def reach(room, seen):
        if room in seen:
            return [*seen, room]
        return next((found for below in MAY_SEE[room] if (found := reach(below, [*seen, room]))), None)

    return next((found for room in MAY_SEE if (found := reach(room, []))), None)


if __name__ == "__main__":
    if found := circle():
        sys.exit(f"circle: {' -> '.join(found)}")
    wrong = list(climbs(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
