#!/usr/bin/env python3
"""together.py ROOT OUT MOST [rename]: which sources of a room, or of its tests, may be compiled as one, MOST at most; into OUT as a line of
CMake a source.

Two sources may not where a name of one's own (in an anonymous namespace, or an alias) is a name of the other, or one that the other sees
in a header and the first does not, or one that the other says and finds in the namespace around the first's, or further out: there it would be hidden. With `rename` a source of a room may have another name there, where it is nobody else's: a second line of
CMake says which of its names it is.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"((?:weft|tests|fuzz)/[^"]+)"', re.M)
BLANKS = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\''
                    r'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.S | re.M)
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+(?:\[\[.*?\]\]\s*|alignas\(.*?\)\s*)?(\w+)(?!.*\))", re.S)
REPLACES = re.compile(r"^void\*? operator (?:new|delete)\b", re.M)
ALIAS = re.compile(r"(?:template\s*<.*>\s*)?(?:using|namespace)\s+(?:(\w+)\s*=|[\w:]+::(\w+)$)", re.S)


def without_angles(head):
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    return head


def name_in(head):
    """(what a statement at namespace scope declares, whether it is an alias); a member's definition and a test declare nothing."""
    head = head.strip()
    if alias := ALIAS.match(head):
        return alias[1] or alias[2], True
    if type_ := TYPE.match(head):
        return type_[1], False
    whole = head
    head = without_angles(re.sub(r"\[\[.*?\]\]|\b(?:alignas|decltype|noexcept|requires)\s*\([^()]*\)", " ", head, flags=re.S))
    before = re.split(r"[(={\[]", head)[0]
    # A settings' fields are listed by one function a type, which no two types share.
    if described := re.match(r"template\s*<class Visitor>\s*void describe\(Visitor&\s*\w*,\s*([\w:]+)&\s*\w*\)$", whole):
        return f"describe({described[1]})", False
    words = re.findall(r"[\w:~]+", before)
    if not words or "::" in words[-1].strip(":") or words[0] in ("using", "namespace", "friend", "static_assert") or re.match(r"[A-Z_]+$", words[-1]):
        return None, False
    return words[-1], False


def others_in(head):
    """What a statement declares behind its first name: constexpr int one = 1, two = 2."""
    while (shorter := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", " ", head)) != head:
        head = shorter
    behind = without_angles(head).split(",")[1:]
    return [name[1] for part in behind if (name := re.match(r"\s*[*&]*\s*(\w+)\s*(?:=|$)", part))]


def scan(text):
    """({name that is a source's own: how it may be said again}, all (namespace, name)) that it declares outside of functions and types."""
    text = BLANKS.sub(" ", text)
    own, every, scopes, head = {}, set(), [], ""
    for piece in re.split(r"([{};])", text):
        inside = scopes and scopes[-1] == "body"
        if piece == "{":
            stripped = head.strip()
            if not inside and re.match(r"(?:inline\s+)?namespace\b[\w\s:]*$|extern\s*$", stripped):
                scopes.append(stripped.removeprefix("inline").strip() if stripped != "namespace" else "own")
                head = ""
            else:
                scopes.append("body")
        elif piece in ("}", ";"):
            if piece == "}" and scopes:
                scopes.pop()
            if "body" not in scopes:
                declared, alias = name_in(head)
                if declared:
                    every.add((*(scope for scope in scopes if scope != "own"), declared))
                    if alias or "own" in scopes or re.match(r"\s*static\b", head):
                        own[declared] = (scopes[-1:], head.split()) if alias else None
                if declared and not alias and piece == ";" and not TYPE.match(head.strip()):
                    for other in others_in(head):
                        every.add((*(scope for scope in scopes if scope != "own"), other))
                        if "own" in scopes or re.match(r"\s*static\b", head):
                            own[other] = None
                head = ""
        elif "body" not in scopes:
            head += piece
    return own, every


class Tree:
    """What the sources of a tree declare and see."""

    def __init__(self, root):
        self.root, self.scanned = root, {}

    def of(self, name):
        if name not in self.scanned:
            path = self.root / name
            text = path.read_text() if path.exists() else ""
            self.scanned[name] = (*scan(text), INCLUDE.findall(text))
        return self.scanned[name]

    def headers(self, name, seen):
        for below in self.of(name)[2]:
            if below not in seen:
                seen.add(below)
                self.headers(below, seen)
        return seen

    def may_rename(self, name, word):
        """Whether every `word` of a source means its own: none is a member's or stands in a namespace, no header of ours says it, and
        nothing hangs on a macro."""
        text = (self.root / name).read_text()
        if word == "operator" or not word.isidentifier() or re.search(r"^\s*#\s*(?!include\b)", text, re.M):
            return False
        said = re.compile(rf"\b{word}\b")
        if re.search(rf"(?:\.|->|::|~)\s*{word}\b", BLANKS.sub(" ", text)):
            return False
        return not any(said.search(BLANKS.sub(" ", (self.root / header).read_text()))
                       for header in self.headers(name, set()) if (self.root / header).exists())

    def source(self, name):
        own, every, _ = self.of(name)
        seen = set().union(*(self.of(header)[1] for header in self.headers(name, set())))
        path = self.root / name
        said = set(re.findall(r"\w+", BLANKS.sub(" ", path.read_text()))) if path.exists() else set()
        return own, every, seen, said


def named(scopes):
    """("namespace weft::cli",) is ("weft", "cli")."""
    return tuple(part for scope in scopes for part in scope.removeprefix("namespace").strip().split("::") if part)


def clash(one, other):
    """The names of one's own that could mean something else, or nothing clear, behind or before the other."""
    own, every, seen, _ = one
    others_own, others_every, others_seen, said = other
    twice = {name for name in own if name in others_own and not (own[name] and own[name] == others_own[name])}
    hides = {name: named(scopes) for *scopes, name in every if name in own and name in said}
    hidden = {name for *scopes, name in others_seen if name in hides and hides[name][:len(named(scopes))] == named(scopes)}
    return twice | (own.keys() - others_own.keys()) & {name for *_, name in (others_every | others_seen) - seen} | hidden - others_own.keys()


def renamed(tree, group, name, source):
    """{file: what it has to rename besides} so that a source gets along with a group of (file, source, its renamed names); None where one
    cannot."""
    rename = {name: set()}
    for other_name, other, others_renamed in group:
        rename[name] |= clash(source, other) - others_renamed
    for other_name, other, others_renamed in group:
        if theirs := clash(other, source) - others_renamed - rename[name]:
            rename[other_name] = theirs
    return rename if all(tree.may_rename(file, word) for file, words in rename.items() for word in words) else None


def groups(tree, files, most, rename=False):
    """[{file: the names that are others there}]"""
    made = []
    for name in files:
        source = tree.source(name)
        for group in made:
            names = renamed(tree, group, name, source) if len(group) < most else None
            if names is not None and (rename or not any(names.values())):
                group.append((name, source, set()))
                for file, _, had in group:
                    had |= names.get(file, set())
                break
        else:
            made.append([(name, source, set())])
    return [{name: names for name, _, names in group} for group in made]


def main():
    root, out, most, rename = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["rename"]
    tree, lines = Tree(root), []
    for wing in ("weft", "tests"):
        for room in sorted(path for path in (root / wing).iterdir() if path.is_dir()):
            files = sorted(path.relative_to(root).as_posix() for path in room.rglob("*.cpp"))
            # Who replaces operator new stays alone, and loops that are compiled once for each instruction set are nobody else's company.
            files = [name for name in files if not REPLACES.search((root / name).read_text())]
            often = [name for name in files if {"loops", "native"} & set(name.split("/"))]
            once = [name for name in files if name not in often]
            # A test's name is said by macros, and so is what they find in it.
            others = rename and wing == "weft"
            for number, group in enumerate([*groups(tree, once, most, others), *groups(tree, often, most)]):
                for name, names in group.items():
                    lines.append(f'set("weft_group_of_{name}" {number})')
                    if names:
                        lines.append(f'set("weft_renamed_in_{name}" {" ".join(sorted(names))})')
    text = "\n".join(lines) + "\n"
    if not out.exists() or out.read_text() != text:
        out.write_text(text)


if __name__ == "__main__":
    main()
