"""Each program runs in a new process, because this one has imported ``logging``."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = "import sys\nfrom kafkacore.logs import logger_of\nlogger = logger_of('kafkacore.somewhere')\n"
SHOW = "logging.basicConfig(format='%(levelname)s %(name)s %(lineno)d: %(message)s', stream=sys.stdout)\n"


def output(program: str) -> list[str]:
    """Return the lines that the program prints; it may write nothing to stderr."""
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN + program], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_message_before_the_import_of_logging_does_not_import_it() -> None:
    assert output("logger.error('lost %s', 1, exc_info=True)\nprint('logging' in sys.modules)") == ["False"]


def test_message_after_the_import_has_the_line_of_its_caller() -> None:
    assert output(f"logger.warning('lost')\nimport logging\n{SHOW}logger.warning('seen %s', 1)") == [
        "WARNING kafkacore.somewhere 7: seen 1"
    ]


def test_level_that_is_set_later_counts() -> None:
    program = f"import logging\n{SHOW}logger.info('lost')\nlogging.getLogger('kafkacore').setLevel('INFO')\n"
    assert output(f"{program}logger.info('seen')") == ["INFO kafkacore.somewhere 8: seen"]


@pytest.mark.parametrize("first", ["", "import logging\n"])
def test_program_that_configures_no_handler_gets_no_message(first: str) -> None:
    assert output(f"{first}logger.warning('lost')\nimport logging\nlogger.error('lost')") == []


@pytest.mark.parametrize("first", ["", "import logging\n"])
def test_logger_of_a_module_that_is_loaded_later_is_the_one_of_logging(first: str) -> None:
    program = (
        f"{first}import logging\nprint(logger_of('kafkacore.later') is logging.getLogger('kafkacore.later'))"
    )
    assert output(program) == ["True"]


def test_logger_can_be_copied() -> None:
    program = f"import copy\nlogger = copy.deepcopy(logger)\nimport logging\n{SHOW}logger.error('seen')"
    assert output(program) == ["ERROR kafkacore.somewhere 8: seen"]


def test_message_of_another_thread_waits_for_the_import() -> None:
    """A module that is being imported is already in ``sys.modules``."""
    program = (
        "import threading, importlib.util\n"
        "warn = threading.Thread(target=logger.warning, args=('lost',))\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        # `logging` imports `string`, so it is half imported now.
        "        if name == 'string' and not warn.is_alive(): warn.start()\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import logging\nwarn.join()"
    )
    assert output(program) == []
