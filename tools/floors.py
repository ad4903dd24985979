#!/usr/bin/env python3
"""The floors of the house: which room may include which. Fails with the first include that climbs."""
import pathlib, re, sys

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
    "launch": ["base", "tensor", "report", "comm", "backend"],
    "checkpoint": ["base", "tensor", "comm", "mesh"],
    "nn": ["base", "tensor", "ops", "comm", "mesh"],
    "model": ["base", "tensor", "ops", "comm", "mesh", "nn"],
    "pipe": ["base", "tensor", "comm", "mesh", "nn"],
    "optim": ["base", "tensor", "ops", "comm", "mesh", "nn"],
    "generate": ["base", "tensor", "text", "ops", "comm", "mesh", "checkpoint", "nn", "model"],
}
MAY_SEE["train"] = [room for room in MAY_SEE if room not in ("backend", "launch", "generate")]
MAY_SEE["plan"] = [room for room in MAY_SEE if room not in ("backend", "launch")]
MAY_SEE["cli"] = [*MAY_SEE]

include = re.compile(r'^\s*#\s*include\s*"weft/([a-z]+)/')
root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
wrong = 0
for path in sorted((root / "weft").rglob("*")):
    if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
        continue
    room = path.relative_to(root / "weft").parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if (m := include.match(line)) and m[1] != room and m[1] not in MAY_SEE[room]:
            print(f"{path.relative_to(root)}:{number}: {room} may not include {m[1]}")
            wrong += 1
# The table itself must be a set of floors: no room may be reached from below.
def reach(room, seen=()):
    if room in seen:
        sys.exit(f"circle: {' -> '.join([*seen, room])}")
    for below in MAY_SEE[room]:
        reach(below, (*seen, room))
for room in MAY_SEE:
    reach(room)
sys.exit(1 if wrong else 0)
