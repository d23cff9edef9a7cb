"""List the compiled modules and make the description; everything else is in pyproject.toml.

No -march=native: one wheel runs on every machine, and wire/crc32c picks its instructions at run time.
``KAFKACORE_BUILD_ONLY=wire,record`` builds the extensions of these packages alone.
``KAFKACORE_SANITIZE=1`` builds them so that they report what C leaves undefined (``make sanitize``).
"""

import os
import re
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = Path("src")
CYTHON_BUILD = Path("build/cython")
COMPILE_ARGS = [
    "-O3",
    # Many a Python is built with -g, and hands it on: four fifths of a wheel would be for debuggers alone.
    "-g0",
    "-Wall",
    "-Wextra",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-cast-function-type",
]
LINK_ARGS: list[str] = []
if os.environ.get("KAFKACORE_SANITIZE"):
    # A block that is kept for reuse would hide what is read after it has been given back.
    SANITIZER = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    COMPILE_ARGS += ["-O1", "-g", "-fno-omit-frame-pointer", "-DKAFKACORE_NO_BLOCK_REUSE", *SANITIZER]
    LINK_ARGS = SANITIZER
# Modules are translated and compiled side by side: one after the other takes a minute more on two cores.
PROCESSORS = os.cpu_count() or 1
DIRECTIVES = {
    "language_level": 3,
    # Python's own descriptors check what they are called with; Cython's functions take any object for self.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "freethreading_compatible": False,
    # It would read C pointers as text. A class that can be copied has a __reduce__ of its own.
    "auto_pickle": False,
    # What is typed as a compiled class can be None: an AttributeError instead of a read through it. Inner
    # loops without the GIL switch it off, because their callers have checked.
    "nonecheck": True,
}


def extensions() -> list[Extension]:
    only = set(filter(None, os.environ.get("KAFKACORE_BUILD_ONLY", "").split(",")))
    found = []
    for pyx in sorted(SOURCE.rglob("*.pyx")):
        package = pyx.parent.relative_to(SOURCE / "kafkacore").parts[0]
        if only and package not in only:
            continue
        # A hand-written C file named like "<module>_impl.c" is part of the module beside it.
        hand_written = pyx.with_name(pyx.stem.lstrip("_") + "_impl.c")
        found.append(
            Extension(
                ".".join(pyx.relative_to(SOURCE).with_suffix("").parts),
                [str(pyx), *([str(hand_written)] if hand_written.exists() else [])],
                extra_compile_args=COMPILE_ARGS,
                extra_link_args=LINK_ARGS,
                # For headers that modules of several packages share, by their path in the package.
                include_dirs=[str(SOURCE)],
                depends=[str(header) for header in sorted(pyx.parent.glob("*.h"))],
            )
        )
    return found


def description() -> str:
    """Return README.md for a package index, where links into the repository need its address.

    They are made absolute with ``Source`` of ``[project.urls]``. Without one they become plain text.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source", "").rstrip("/")
    target = rf"[\1]({source}/blob/main/\2)" if source else r"\1"
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", target, readme)


# The processes that translate may load this file again.
if __name__ == "__main__":
    # Cython compares the times of files alone.
    used = CYTHON_BUILD / "directives"
    is_forced = not used.exists() or used.read_text() != repr(DIRECTIVES)
    modules = cythonize(
        extensions(),
        build_dir=str(CYTHON_BUILD),
        compiler_directives=DIRECTIVES,
        force=is_forced,
        nthreads=PROCESSORS,
    )
    if not os.environ.get("KAFKACORE_BUILD_ONLY"):
        used.write_text(repr(DIRECTIVES))
    setup(
        ext_modules=modules,
        long_description=description(),
        long_description_content_type="text/markdown",
        options={"build_ext": {"parallel": PROCESSORS}},
    )
