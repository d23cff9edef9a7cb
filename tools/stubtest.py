"""Hold the stub of every compiled module against the module itself. Exit status is mypy.stubtest's."""

import subprocess
import sys
import tempfile
from pathlib import Path

# What Cython adds to every compiled module; a stub has no business to speak of it.
ADDED_BY_CYTHON = (r".*\.__test__", r".*\.__pyx_capi__")
SOURCE = Path(__file__).parent.parent / "src"


def main() -> int:
    compiled = sorted(SOURCE.rglob("*.pyx"))
    modules = [".".join(pyx.relative_to(SOURCE).with_suffix("").parts) for pyx in compiled]
    for pyx in compiled:
        if not pyx.with_suffix(".pyi").exists():
            print(f"missing stub: {pyx.with_suffix('.pyi')}", file=sys.stderr)
            return 1
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as allowed:
        allowed.write("\n".join(ADDED_BY_CYTHON))
        allowed.flush()
        options = ["--concise", "--ignore-unused-allowlist", "--allowlist", allowed.name]
        command = [sys.executable, "-m", "mypy.stubtest", *options, *modules]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
