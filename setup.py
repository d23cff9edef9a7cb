"""Build the compiled modules and the package description. Everything else is in pyproject.toml.

``-march=native`` is not used, so that a wheel runs on every machine. wire/crc32c chooses its instructions at
run time. ``KAFKACORE_BUILD_ONLY=wire,record`` builds only the extensions of these packages.
``KAFKACORE_SANITIZE=1`` builds them with sanitizers (``make sanitize``).
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
    # Many builds of Python pass -g on to extensions. Debug symbols would be four fifths of a wheel.
    "-g0",
    "-Wall",
    "-Wextra",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-cast-function-type",
]
LINK_ARGS: list[str] = []
if os.environ.get("KAFKACORE_SANITIZE"):
    # The reuse of memory blocks would hide reads of freed memory.
    SANITIZER = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    COMPILE_ARGS += ["-O1", "-g", "-fno-omit-frame-pointer", "-DKAFKACORE_NO_BLOCK_REUSE", *SANITIZER]
    LINK_ARGS = SANITIZER
# Modules are translated and compiled in parallel, which saves a minute on two cores.
PROCESSORS = os.cpu_count() or 1
DIRECTIVES = {
    "language_level": 3,
    # Python's own descriptors check the type of self. Cython's functions would accept any object.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "freethreading_compatible": False,
    # Automatic pickling would treat C pointers as strings. A class that can be pickled defines __reduce__.
    "auto_pickle": False,
    # A variable with the type of a compiled class can be None. With this check its use raises AttributeError
    # instead of crashing. Inner loops without the GIL disable the check, because their callers have made it.
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
                # Modules include headers of other packages by their path below src.
                include_dirs=[str(SOURCE)],
                depends=[str(header) for header in sorted(pyx.parent.glob("*.h"))],
            )
        )
    return found


def description() -> str:
    """Return README.md for a package index, with absolute links into the repository.

    The links use ``Source`` of ``[project.urls]``. If it is missing, they become plain text.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source", "").rstrip("/")
    target = rf"[\1]({source}/blob/main/\2)" if source else r"\1"
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", target, readme)


# The worker processes of cythonize may import this file again.
if __name__ == "__main__":
    # Cython compares only modification times, so changed directives must force a rebuild.
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
