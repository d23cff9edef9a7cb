"""``python -m kafkacore``: runs the ``kafkacore`` command when it is not on the path."""

from __future__ import annotations

import sys

from kafkacore.cli.main import main

if __name__ == "__main__":
    sys.exit(main(prog="python -m kafkacore"))
