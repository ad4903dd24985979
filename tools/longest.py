#!/usr/bin/env python3
"""longest.py [ROOT]: files of more than 400 lines, functions of more than 60 or with more than 5 parameters fail, with file and line."""
import fnmatch
import pathlib
import re
import sys

FILE_LINES, FUNCTION_LINES, PARAMETERS = 400, 60, 5
FOLDERS = ["weft", "tests", "bench", "fuzz"]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}

# Tables that one reads by looking up, not from the top: pattern of the path -> (lines allowed, reason).
ALLOWED_FILES = {}
# Functions that are one table: pattern of "path:name" -> (lines allowed, reason).
ALLOWED_FUNCTIONS = {
    "weft/cli/dialect/*.cpp:*": (120, "a row a flag of Megatron's, by its topics"),
    "weft/model/config.h:describe": (80, "a line a setting"),
    "tests/nn/gradient_test.cpp:cases": (90, "a few lines a model"),
}

# Functions that others call through a fixed form: pattern of "path:name" -> (parameters allowed, reason).
ALLOWED_PARAMETERS = {
    "weft/backend/cpu/fast/loops/*.cpp:*": (9, "a row's operands, handed over in registers"),
    "weft/backend/cpu/fast/*_tile.h:*": (7, "a tile's operands, handed over in registers"),
    "weft/backend/cpu/fast/attention.cpp:attention_backward": (6, "Kernels' five, and the loops"),
    "weft/backend/cpu/product/operands.cpp:pack": (7, "a matrix, its size, and who packs it"),
    "weft/backend/cpu/*/engine.*:pack": (6, "a matrix, its size, and who packs it"),
    "weft/backend/cpu/onednn/pieces.cpp:pack": (6, "the engine's"),
    "tests/support/gpu/*.cpp:cu*": (16, "as many as NVIDIA's own take"),
    "tests/support/gpu/*.cpp:nccl*": (7, "as many as NVIDIA's own take"),
    "tests/backend/products_test.cpp:pack": (6, "the engine's, for a planted one"),
    "weft/tensor/kernels.h:balance": (6, "two results, two operands, and how"),
    "weft/backend/cpu/*/routing.cpp:*::balance": (6, "Kernels' six"),
    "weft/backend/cuda/routing.cu:*::balance": (6, "Kernels' six"),
    "weft/nn/router.cpp:Router::Router": (6, "its parameters, its ranks and where it lies"),
}


def blanked(text):
    """The source with comments, strings and characters blanked and every line break kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'',
        re.S)
    text = pattern.sub(lambda m: '""' + "\n" * m[0].count("\n") if m[0][0] in 'R"' else "\n" * m[0].count("\n"), text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)


def kind_of(head):
    """What an opening brace begins, from the text since the last statement: a scope, a function, or a value."""
    head = re.sub(r"\[\[.*?\]\]", " ", head, flags=re.S)
    head = re.sub(r"^\s*(?:public|private|protected)\s*:", " ", head)
    if re.search(r"\bnamespace\b|\bextern\s*\"\"\s*$", head):
        return "scope"
    body = re.sub(r"template\s*<.*?>\s*(?=\w)", " ", head, flags=re.S)
    if re.match(r"\s*(?:typedef\s+)?(?:class|struct|union|enum)\b[^()=]*(?:alignas\s*\([^)]*\)[^()=]*)?$", body):
        return "scope"
    outside = re.sub(r"\boperator\s*(?:[^\s\w(]+|\(\s*\))", "operator_", body)
    if re.search(r"(?<![=!<>])=(?!=)\s*[\w:<>, ]*$", re.sub(r"\([^()]*\)", "()", outside)):
        return "value"
    if re.search(r"\)\s*(?:const|noexcept|override|final|mutable|volatile|&|\s|->\s*[\w:<>,\s*&]+|requires\b.*"
                 r"|try|:\s.*[)}])*$", outside, re.S):
        return "function"
    return "value"


def name_of(head):
    """The name in a function's head; a test's is Subject.says_a_sentence."""
    before = head[:head.index("(")] if "(" in head else head
    if re.match(r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*$", before):
        return ".".join(re.findall(r"\w+", head[head.index("(") + 1:])[:2])
    return (re.findall(r"[\w:~.]+", before) or ["?"])[-1]


def without_angles(head):
    """The head without what stands between angle brackets."""
    head = re.sub(r"\boperator\s*(?:[^\s\w(]+|\(\s*\))", "operator_", head.replace("->", ""))
    while (shorter := re.sub(r"(?<=\w)(\s*)<[^<>]*>", r"\1", head)) != head:
        head = shorter
    return head


def parameters_of(head):
    """How many parameters a function's head lists; a test has none."""
    head = without_angles(re.sub(r"\[\[.*?\]\]|\b(?:alignas|explicit|noexcept|decltype|requires)\s*\([^()]*\)", " ", head, flags=re.S))
    if "(" not in head or re.match(r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*\(", head):
        return 0
    depth, commas, inside = 0, 0, ""
    for c in head[head.index("("):]:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(c, 0)
        if depth == 0:
            break
        commas += c == "," and depth == 1
        inside += c
    return commas + 1 if inside[1:].strip() not in ("", "void") else 0


def functions(text):
    """(name, first line, last line, parameters) of every function that is not inside another."""
    text = blanked(text)
    braces, head, at, line, head_line, depth = [], "", 0, 1, 1, 0
    for mark in re.finditer(r"[{};]", text):
        piece, at = text[at:mark.start()], mark.end()
        if depth == 0:  # outside of functions
            if not head.strip():
                blank = len(piece) - len(piece.lstrip())
                head_line = line + piece.count("\n", 0, blank)
            head += piece
        line += piece.count("\n")
        if depth > 0:
            depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
            if depth == 0:
                yield (*function, line, parameters)
                head = ""
        elif mark[0] == "{":
            kind = kind_of(head)
            if kind == "function":
                function, parameters, depth = (name_of(head), head_line), parameters_of(head), 1
            else:
                braces.append(kind)
                head = head + "{" if kind == "value" else ""
        elif mark[0] == "}":
            # What follows a value belongs to the same statement.
            head = head + "}" if braces and braces.pop() == "value" else ""
        elif not (braces and braces[-1] == "value"):
            head = ""


def limit_of(name, allowed, usual):
    return next((lines for pattern, (lines, _) in allowed.items() if fnmatch.fnmatch(name, pattern)), usual)


def check(root):
    complaints = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            name, text = path.relative_to(root).as_posix(), path.read_text()
            lines, allowed = text.count("\n"), limit_of(name, ALLOWED_FILES, FILE_LINES)
            if lines > allowed:
                complaints.append(f"{name}:{allowed + 1}: the file has {lines} lines, and {allowed} are allowed")
            for function, first, last, parameters in functions(text):
                count, limit = last - first + 1, limit_of(f"{name}:{function}", ALLOWED_FUNCTIONS, FUNCTION_LINES)
                if count > limit:
                    complaints.append(f"{name}:{first}: {function} has {count} lines, and {limit} are allowed")
                limit = limit_of(f"{name}:{function}", ALLOWED_PARAMETERS, PARAMETERS)
                if parameters > limit:
                    complaints.append(f"{name}:{first}: {function} takes {parameters} parameters, and {limit} are allowed: name them in a struct")
    return complaints


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
