"""Hold the stub of every compiled module against the module itself. Exit status is mypy.stubtest's."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"


def main() -> int:
    compiled = sorted(SOURCE.rglob("*.pyx"))
    modules = [".".join(pyx.relative_to(SOURCE).with_suffix("").parts) for pyx in compiled]
    for pyx in compiled:
        if not pyx.with_suffix(".pyi").exists():
            print(f"missing stub: {pyx.with_suffix('.pyi')}", file=sys.stderr)
            return 1
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", *modules]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
