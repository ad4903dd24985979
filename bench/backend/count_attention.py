#!/usr/bin/env python3
"""count_attention.py FORWARD.o BACKWARD.o [--mca llvm-mca-19]: what attention's loops of a set with AVX-512 are made of, and what a model of Zen 4 makes of it.

The objects are weft_fast_avx512's attention_forward and attention_backward. Nothing is timed: llvm-mca says how many cycles an iteration takes whose
operands are in the first cache; how often each loop goes around for a head of s queries and keys under a causal mask is walked here as the sources do.
"""
import argparse
import collections
import re
import subprocess

KINDS = {"vdpbf16ps": r"vdpbf16ps", "FMA": r"vfn?m(add|sub)\d", "add, mul, max": r"v(add|sub|mul|max)ps", "convert": r"vcvt|vpmovzx",
         "broadcast": r"vbroadcast", "shift, logic": r"vps[lr]l|vpand|vpor|vpternlog", "compare": r"vcmp|vptestm|vpcmp",
         "shuffle": r"vperm|vshuf|vunpck|vblend", "move": r"vmov"}
TILE_QUERIES, TILE_KEYS, SUMS, WIDTH = 48, 96, 24, 16


def functions(objdump, path):
    found, name = collections.defaultdict(list), None
    for line in subprocess.run([objdump, "-dC", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            name = head[1]
        elif code := re.match(r"\s+([0-9a-f]+):\s+(.*?)\s*$", line):
            found[name].append((int(code[1], 16), re.sub(r"\s*(<|#).*", "", code[2])))
    return found


def loops(body):
    """(first, last) of every loop, the inner ones first."""
    place = {address: i for i, (address, _) in enumerate(body)}
    jumps = [(i, re.fullmatch(r"j(?!mp)\w+\s+([0-9a-f]+)", code)) for i, (_, code) in enumerate(body)]
    back = [(place[int(to[1], 16)], i) for i, to in jumps if to and place.get(int(to[1], 16), i + 1) <= i]
    return sorted(set(back), key=lambda ends: ends[1] - ends[0])


def codes(found, name, what):
    """The loop of a function with the most FMAs ("inner"), the one with the most maxima ("max"), or what is around the inner one ("around")."""
    body = next(body for full, body in found.items() if re.search(name, full))
    text = [code for _, code in body]
    inner = [ends for ends in loops(body) if not any(o != ends and ends[0] <= o[0] and o[1] <= ends[1] for o in loops(body))]
    marks = r"vmaxps" if what == "max" else r"vf\w+ps"
    first, last = max(inner, key=lambda ends: sum(bool(re.match(marks, code)) for code in text[ends[0]:ends[1] + 1]))
    if what != "around":
        return text[first:last + 1]
    outer = min((ends for ends in loops(body) if ends[0] < first and ends[1] > last), key=lambda ends: ends[1] - ends[0])
    return [code for code in text[outer[0]:first] + text[last + 1:outer[1] + 1] if "zmm" in code]


def count(block):
    kinds = collections.Counter()
    for code in block:
        word, _, operands = code.partition(" ")
        kind = next((kind for kind, pattern in KINDS.items() if re.match(pattern, word)), "scalar")
        store = kind == "move" and re.search(r"\)$", operands)
        load = not store and "(" in operands and "mm" in operands and kind != "broadcast"
        kinds["store" if store else "load" if kind == "move" and load else kind] += 1
        kinds["load"] += load and kind != "move"
    return kinds


def model(mca, block, cpu):
    """Cycles an iteration, and the unit that is busiest."""
    text = "here:\n" + "\n".join(re.sub(r"^(j\w+)\s.*", r"\1 here", code) for code in block) + "\n"
    said = subprocess.run([mca, f"-mcpu={cpu}", "-iterations=300", "-instruction-info=0"], input=text, capture_output=True, text=True, check=True).stdout
    units = re.findall(r"^\[[\d.]+\]\s+- (\w+)", said, re.M)
    busy = re.search(r"per iteration:\n.*\n(.*)", said)[1].split()
    pressure = {}
    for unit, share in zip(units, busy):
        pressure[unit] = max(pressure.get(unit, 0), 0 if share == "-" else float(share))
    return int(re.search(r"Total Cycles:\s+(\d+)", said)[1]) / 300, max(pressure, key=pressure.get), max(pressure.values())


def up(x, unit):
    return -(-x // unit) * unit


def walk(s, d):
    """How often each loop goes around for one head, forward and backward; and the sums of products that the mask lets through, in registers."""
    around = collections.Counter()
    for first in range(0, s, TILE_QUERIES):
        queries = min(TILE_QUERIES, s - first)
        for key in range(0, first + queries, TILE_KEYS):
            keys = min(TILE_KEYS, first + queries - key)
            scores, columns = up(keys, 8) // 8, d // 64
            around["scores"] += scores * d
            around["max"] += keys / 2
            around["exp"] += keys
            around["p v"] += up(queries, 6) // 6 * columns * keys
            around["around scores"] += scores
            around["around p v"] += up(queries, 6) // 6 * columns
            around["scores, dp"] += 2 * scores * d
            around["ds"] += keys
            around["dk, dv"] += 2 * up(keys, 6) // 6 * columns * queries
            around["dq"] += up(queries, 6) // 6 * columns * keys
            around["around scores, dp"] += 2 * scores
            around["around dk, dv"] += 2 * up(keys, 6) // 6 * columns
            around["around dq"] += up(queries, 6) // 6 * columns
    return around, s * (s + 1) / 2 * d / WIDTH


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("forward")
    words.add_argument("backward")
    words.add_argument("--mca", default="llvm-mca-19")
    words.add_argument("--objdump", default="objdump")
    words.add_argument("--cpu", default="znver4")
    given = words.parse_args()
    forward, backward = functions(given.objdump, given.forward), functions(given.objdump, given.backward)
    plain = next((r for r in (r"differentiate_columns<false, 3", r"differentiate_columns<3") if any(re.search(r, name) for name in backward)))
    tiles = r"column_of_tiles<{}, \(.*Start\){}, .*{}>\("
    parts = {"scores": (forward, tiles.format(3, 0, "ByRows")), "p v": (forward, tiles.format(4, 2, "ByColumns")),
             "scores, dp": (backward, tiles.format(3, 0, "ByRows")), "dk, dv": (backward, tiles.format(4, 1, "ByRows")),
             "dq": (backward, tiles.format(4, 1, "ByColumns"))}
    blocks = {name: codes(*place, "inner") for name, place in parts.items()}
    blocks |= {"max": codes(forward, r"normalize<3", "max"), "exp": codes(forward, r"normalize<3", "inner"), "ds": codes(backward, plain, "inner")}
    blocks |= {"around " + name: codes(*place, "around") for name, place in parts.items()}
    columns = [*list(KINDS)[:-1], "load", "store", "move", "scalar"]
    print("| loop |", " | ".join(columns), f"| cycles ({given.cpu}) | busiest |")
    print("|---" * (len(columns) + 3) + "|")
    cycles = {}
    for name, block in blocks.items():
        kinds = count(block)
        cycles[name], unit, busy = model(given.mca, block, given.cpu)
        print(f"| {name} |", " | ".join(str(kinds[kind] or "") for kind in columns), f"| {cycles[name]:.1f} | {unit} {busy:.1f} |")
    print("\n| what | s | d | additions alone | loops | loops and what is around tiles | of that, max, exp, ds |\n" + "|---" * 7 + "|")
    apart = ("max", "exp", "ds")
    for what, names, products in (("forward", ("scores", "max", "exp", "p v"), 2), ("backward", ("scores, dp", "ds", "dk, dv", "dq"), 5)):
        for s in (1024, 8192):
            for d in (64, 128):
                around, useful = walk(s, d)
                pairs = products * useful / 2  # additions of a product in vdpbf16ps
                alone = pairs / sum(SUMS * around[name] for name in names if name not in apart)
                # A product of the same tile, vdpbf16ps in place of each FMA and as fast.
                product = pairs * cycles["p v"] / SUMS
                inner = sum(cycles[name] * around[name] for name in names)
                whole = inner + sum(cycles["around " + name] * around["around " + name] for name in names if name not in apart)
                rest = sum(cycles[name] * around[name] for name in names if name in apart)
                print(f"| {what} | {s} | {d} |", " | ".join(f"{100 * x:.1f} %" for x in (alone, product / inner, product / whole, rest / whole)), "|")


if __name__ == "__main__":
    main()
