"""Check that inner loops do not call Python, by the lines that ``cython -a`` colours yellow.

    python tools/annotate.py [file.pyx ...]

Every loop inside a function or block marked ``nogil`` is checked line by line in Cython's annotated C code.
Each line that calls Python's C API, or a Cython helper that calls it, is printed. The exit status is 1 if
there are any. Statements that raise or take the GIL on purpose (``raise``, ``with gil``) end a loop and are
skipped.
"""

from __future__ import annotations

import html
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from Cython.Compiler.Main import compile_single
from Cython.Compiler.Options import CompilationOptions, default_options

PROJECT = Path(__file__).resolve().parents[1]
# The compiler directives of the build decide what the loops call.
sys.path.insert(0, str(PROJECT))
from setup import DIRECTIVES  # noqa: E402

SOURCE = PROJECT / "src"
NOGIL = re.compile(r"^\s*(?:cdef\b.*\bnogil\s*:|with nogil\s*:)")
CONTINUED = re.compile(r"^\s*(?:cdef|cpdef)\b.*\([^)]*$")
LOOP = re.compile(r"^\s*(?:for|while)\b")
#: Statements that end a loop or leave its fast path.
ON_PURPOSE = re.compile(r"^\s*(?:raise\b|with gil\b)")
LINE = re.compile(r'<pre class="cython line score-\d+"[^>]*>[^<]*<span class="">(\d+)</span>')
CALL = re.compile(r"<span class='(?:py_c_api|pyx_c_api)'>([^<]+)</span>")


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def block(lines: list[str], start: int) -> range:
    """Return the numbers, from 0, of the lines that belong to the statement at ``start``."""
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or indent(lines[end]) > indent(lines[start])):
        end += 1
    return range(start + 1, end)


def inner_lines(text: str) -> set[int]:
    """Return the numbers, from 1, of the lines in loops that run without the GIL."""
    lines = [line.split("#")[0].rstrip() for line in text.splitlines()]
    found: set[int] = set()
    for at, line in enumerate(lines):
        header = line
        last = at
        # A signature over several lines ends with the line that closes its bracket.
        while CONTINUED.match(header) and not header.endswith(":") and last + 1 < len(lines):
            last += 1
            header = f"{header} {lines[last].strip()}"
        if not NOGIL.match(header):
            continue
        body = [one for one in block(lines, at) if one > last]
        ignored = {one for number in body if ON_PURPOSE.match(lines[number]) for one in block(lines, number)}
        for number in body:
            if LOOP.match(lines[number]):
                found |= {one + 1 for one in [number, *block(lines, number)] if one not in ignored}
    return {number for number in found if not ON_PURPOSE.match(lines[number - 1])}


def calls_by_line(annotated: str) -> dict[int, list[str]]:
    """Return the calls of Python in the C code of each line, read from Cython's HTML page of a module."""
    parts = LINE.split(annotated)
    return {
        int(number): [html.unescape(name) for name in CALL.findall(code)]
        for number, code in zip(parts[1::2], parts[2::2], strict=True)
    }


def check(module: Path, source: Path = SOURCE) -> tuple[int, list[str]]:
    """Return the number of lines checked, and a message for each line that calls Python."""
    text = module.read_text()
    inner = inner_lines(text)
    if not inner:
        return 0, []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / (module.stem + ".c")
        options = CompilationOptions(
            default_options,
            annotate=True,
            compiler_directives=dict(DIRECTIVES),
            output_file=str(output),
            include_path=[str(source)],
        )
        name = ".".join(module.relative_to(source).with_suffix("").parts)
        result = compile_single(str(module), options, name)
        if result.num_errors:
            return 0, [f"{module}: Cython failed to compile this module"]
        calls = calls_by_line(output.with_suffix(".html").read_text())
    where = module.relative_to(source)
    return len(inner), [
        f"{where}:{number}: an inner loop calls {', '.join(sorted(set(calls[number])))}: "
        f"{text.splitlines()[number - 1].strip()}"
        for number in sorted(inner)
        if calls.get(number)
    ]


def main() -> int:
    modules = [Path(name).resolve() for name in sys.argv[1:]] or sorted(SOURCE.rglob("*.pyx"))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, modules))
    for sentence in (sentence for _, sentences in results for sentence in sentences):
        print(sentence)
    looked_at = sum(count for count, _ in results)
    print(f"checked {looked_at} lines of inner loops in {sum(bool(count) for count, _ in results)} modules")
    # If all modules are checked, some have inner loops; modules given as arguments may have none.
    is_blind = not looked_at and len(sys.argv) == 1
    return 1 if is_blind or any(sentences for _, sentences in results) else 0


if __name__ == "__main__":
    sys.exit(main())
