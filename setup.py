"""List the compiled modules, create the description, and write the sdist; all else is in pyproject.toml.

The build does not use -march=native: one wheel runs on every machine, and wire/crc32c selects its
instructions at run time. ``KAFKACORE_BUILD_ONLY=wire,record`` builds only the extensions of these packages.
``KAFKACORE_OPTIMIZE=0`` builds them in a fraction of the time, for ``make demo`` on a fresh clone; the next
build without it compiles them again. ``KAFKACORE_SANITIZE=address`` builds them with sanitizers that report
undefined behaviour in C (``make sanitize``), and ``KAFKACORE_SANITIZE=thread`` with the one that reports data
races (``make tsan``).
"""

import gzip
import os
import re
import sys
import tarfile
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

SOURCE = Path("src")
CYTHON_BUILD = Path("build/cython")
COMPILE_ARGS = [
    "-O3",
    # Many Pythons are built with -g and pass it on, which would make four fifths of a wheel debug
    # information.
    "-g0",
    "-Wall",
    "-Wextra",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-Wno-cast-function-type",
]
LINK_ARGS: list[str] = []
SANITIZERS = {
    # Blocks kept for reuse would hide reads of freed memory.
    "address": [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-DKAFKACORE_NO_BLOCK_REUSE",
    ],
    "thread": ["-fsanitize=thread"],
}
if os.environ.get("KAFKACORE_SANITIZE"):
    LINK_ARGS = SANITIZERS[os.environ["KAFKACORE_SANITIZE"]]
    # Without optimization, gcc takes a third of the time, and it removes no operation before the check.
    COMPILE_ARGS += ["-O0", "-g", "-fno-omit-frame-pointer", *LINK_ARGS]
# Translate and compile modules in parallel; sequentially, it takes a minute more on two cores.
PROCESSORS = os.cpu_count() or 1
DIRECTIVES = {
    "language_level": 3,
    # Python's own descriptors check the type of self; Cython's functions accept any object.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "freethreading_compatible": False,
    # Automatic pickling would read C pointers as text. A class that supports copying defines __reduce__.
    "auto_pickle": False,
    # A variable typed as a compiled class can be None. This check raises AttributeError instead of
    # dereferencing it. Inner loops without the GIL disable it, because their callers have checked.
    "nonecheck": True,
}

#: If the list of a list comprehension cannot grow, Cython 3.3.1 releases the new element here, and once more
#: where the error is handled. Only a success may release it here.
RELEASES_TWICE = "int result = PyList_Append(list, x);\n    Py_DECREF(x);"
RELEASES_ONCE = "int result = PyList_Append(list, x);\n    if (result == 0) Py_DECREF(x);"

#: Values that the last build of all modules used. Cython and setuptools compare only the times of files.
DIRECTIVES_IN_USE = CYTHON_BUILD / "directives"
ARGUMENTS_IN_USE = CYTHON_BUILD / "compile_arguments"


def is_recorded(path: Path, value: object) -> bool:
    """Return whether the last build of all modules used this value."""
    return path.exists() and path.read_text() == repr(value)


def record(path: Path, value: object) -> None:
    """Record what this build used, unless it builds only some of the modules."""
    if not os.environ.get("KAFKACORE_BUILD_ONLY"):
        path.write_text(repr(value))


if os.environ.get("KAFKACORE_OPTIMIZE") == "0" and not is_recorded(ARGUMENTS_IN_USE, COMPILE_ARGS):
    COMPILE_ARGS[:] = ["-O0", "-g0", "-w"]

#: Commands of a build that use neither the generated C nor the modules. Translation takes a minute.
WITHOUT_MODULES = {"sdist", "egg_info", "dist_info"}


class ReproducibleSdist(sdist):
    """With SOURCE_DATE_EPOCH, which setuptools ignores, write the same bytes for the same files."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):  # type: ignore[no-untyped-def]  # noqa: A002 - setuptools' name
        """Create the archive, with the time of SOURCE_DATE_EPOCH and without the owners of the files."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if not epoch or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)

        def normalized(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime = int(epoch)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        target = f"{base_name}.tar.gz"
        # Neither the name nor the time of the archive is stored in it.
        with (
            open(target, "wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for path in sorted(Path(base_dir).rglob("*")):
                archive.add(path, recursive=False, filter=normalized)
        return target


class ConsistentBuild(build_ext):
    """Compile all modules in ``src`` with the same arguments."""

    def run(self) -> None:
        """Compile the modules that have changed, or all of them if the arguments have changed."""
        if not self.inplace:
            super().run()
            return
        if not is_recorded(ARGUMENTS_IN_USE, COMPILE_ARGS):
            self.force = True
            # If this build is interrupted, the next one compiles all modules.
            ARGUMENTS_IN_USE.unlink(missing_ok=True)
        super().run()
        record(ARGUMENTS_IN_USE, COMPILE_ARGS)


def extensions() -> list[Extension]:
    only = set(filter(None, os.environ.get("KAFKACORE_BUILD_ONLY", "").split(",")))
    found = []
    if only & {path.name for path in (SOURCE / "kafkacore").iterdir()}:
        # All packages need the modules that are in no package.
        only.add("kafkacore")
    for pyx in sorted(SOURCE.rglob("*.pyx")):
        place = pyx.relative_to(SOURCE).parts
        if only and place[1 if len(place) > 2 else 0] not in only:
            continue
        # A hand-written C file named "<module>_impl.c" is part of the module next to it.
        hand_written = pyx.with_name(pyx.stem.lstrip("_") + "_impl.c")
        found.append(
            Extension(
                ".".join(pyx.relative_to(SOURCE).with_suffix("").parts),
                [str(pyx), *([str(hand_written)] if hand_written.exists() else [])],
                extra_compile_args=COMPILE_ARGS,
                extra_link_args=LINK_ARGS,
                # The include path for headers shared by several packages, which are named by their path in
                # the package.
                include_dirs=[str(SOURCE)],
                depends=[str(header) for header in sorted(pyx.parent.glob("*.h"))],
            )
        )
    return found


def description() -> str:
    """Return README.md for a package index, with absolute links.

    Links into the repository are resolved against ``Source`` of ``[project.urls]``. Without it they become
    plain text.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source", "").rstrip("/")
    target = rf"[\1]({source}/blob/main/\2)" if source else r"\1"
    readme = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)", target, readme)


def translated() -> list[Extension]:
    """Translate the modules that have changed to C, and return them."""
    modules: list[Extension] = cythonize(
        extensions(),
        build_dir=str(CYTHON_BUILD),
        compiler_directives=DIRECTIVES,
        force=not is_recorded(DIRECTIVES_IN_USE, DIRECTIVES),
        nthreads=PROCESSORS,
    )
    record(DIRECTIVES_IN_USE, DIRECTIVES)
    for generated in [Path(module.sources[0]) for module in modules]:
        text = generated.read_text(encoding="utf-8")
        if RELEASES_TWICE in text:
            generated.write_text(text.replace(RELEASES_TWICE, RELEASES_ONCE), encoding="utf-8")
    return modules


# The worker processes that translate modules may import this file again.
if __name__ == "__main__":
    setup(
        ext_modules=[] if WITHOUT_MODULES & set(sys.argv) else translated(),
        cmdclass={"build_ext": ConsistentBuild, "sdist": ReproducibleSdist},
        long_description=description(),
        long_description_content_type="text/markdown",
        options={"build_ext": {"parallel": PROCESSORS}},
    )
