#!/usr/bin/env python3
"""includes.py [ROOT]: a source that names a type of ours without including, itself or through its headers, one that declares it, fails.

CI compiles a few sources of a room as one (cmake/together.py), where such a source would live on its neighbours' includes.
"""
import collections
import pathlib
import re
import sys

from floors import MAY_SEE

# Found by the path of includes, not by name: an instruction set's own, and what stands for NVIDIA's.
ELSEWHERE = re.compile(r"weft/backend/(cpu/fast/native|cuda)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(weft/[^"]+)"', re.M)
BLANKS = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\''
                    r'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.S | re.M)
DECLARES = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?|using|typename|concept)\s+(?:\[\[.*?\]\]\s*|alignas\(.*?\)\s*)?([A-Z]\w*)")
# Those at the edge of the page are a namespace's own; those further in a type's.
EDGE = re.compile(r"^(?:template <.*>\n?\s*)?" + DECLARES.pattern, re.M)
TYPE = re.compile(r"(?<![\w.:])(?:weft::)?(?:[a-z]+::)?([A-Z]\w*[a-z]\w*)")


class Tree:
    """What the sources of a tree include, declare and name."""

    def __init__(self, root):
        self.root, self.known = root, {}

    def of(self, name):
        """(headers of ours, {types declared}, blanked text); nothing for a file that is made elsewhere."""
        if name not in self.known:
            path = self.root / name
            text = path.read_text() if path.exists() else ""
            blanked = BLANKS.sub(lambda m: "\n" * m[0].count("\n"), text)
            self.known[name] = (INCLUDE.findall(text), set(DECLARES.findall(blanked)), blanked)
        return self.known[name]

    def reached(self, name, seen):
        for below in self.of(name)[0]:
            if below not in seen:
                seen.add(below)
                self.reached(below, seen)
        return seen


def missing(tree, name, declared_by):
    """(line, type, a header that declares it) of each type that a source names and does not see, and that its room may see."""
    room = name.split("/")[1]
    rooms = {room, *MAY_SEE.get(room, [])}
    sees = set(tree.of(name)[1]).union(*(tree.of(header)[1] for header in tree.reached(name, set())))
    for number, line in enumerate(tree.of(name)[2].splitlines(), 1):
        for type_ in TYPE.findall(line):
            header = next((header for header in declared_by.get(type_, []) if header.split("/")[1] in rooms), None)
            if header and type_ not in sees:
                sees.add(type_)
                yield number, type_, header


def unseen(root):
    """Every type of ours that a source names and does not see."""
    tree, declared_by = Tree(root), collections.defaultdict(list)
    files = sorted(p.relative_to(root).as_posix() for p in (root / "weft").rglob("*") if p.suffix in (".h", ".cpp"))
    files = [name for name in files if not ELSEWHERE.match(name)]
    for name in files:
        if name.endswith(".h"):
            for type_ in set(EDGE.findall(tree.of(name)[2])):
                declared_by[type_].append(name)
    for name in files:
        for line, type_, header in missing(tree, name, declared_by):
            yield f"{name}:{line}: names {type_} and does not include what declares it, as {header} does"


def main():
    found = list(unseen(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
    print("".join(line + "\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
