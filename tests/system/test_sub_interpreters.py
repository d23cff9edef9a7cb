"""The compiled modules work in one interpreter per process; a second one gets a helpful error."""

import subprocess
import sys

PROGRAM = """
import sys

from kafkacore import KafkaProducer

CODE = '''
import kafkacore
try:
    kafkacore.KafkaProducer
except ImportError as error:
    print(error)
'''
if sys.version_info >= (3, 13):
    import _interpreters
    _interpreters.exec(_interpreters.create(), CODE)
else:
    import _xxsubinterpreters
    _xxsubinterpreters.run_string(_xxsubinterpreters.create(), CODE)
"""


def test_second_interpreter_is_told_what_to_do():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "can be loaded by only one interpreter per process" in done.stdout
    assert "WSGIApplicationGroup %{GLOBAL}" in done.stdout
