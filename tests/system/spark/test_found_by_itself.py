"""Spark finds the formats by importing ``pyspark_kafkacore`` and ``pyspark_kafkacore_log``.

It imports them in every job that names a format unknown to Spark, so the imports must be cheap.
"""

import importlib.util
import json
import subprocess
import sys

import pytest
from eventually import BUDGET_S

from kafkacore.spark.source import KafkaCoreDataSource

#: Maximum number of modules that the import may load in addition to those of Spark's own lookup.
MOST_MODULES = 7

IMPORTING = """
import json, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in WITHOUT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
if "pyspark" not in WITHOUT:
    import pyspark.sql.datasource
before = set(sys.modules)
found = __import__(MODULE)
print(json.dumps([sorted(set(sys.modules) - before), hasattr(found, "DefaultSource")]))
"""

formats = pytest.mark.parametrize("module", ["pyspark_kafkacore", "pyspark_kafkacore_log"])


def imported(module, without=()):
    """Import in a new process, and return the modules it loads and whether the source exists."""
    program = f"MODULE = {module!r}\nWITHOUT = {tuple(without)!r}\n{IMPORTING}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=BUDGET_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@formats
def test_import_is_light_and_needs_nothing_but_pyspark(module):
    modules, is_there = imported(module, without=["pyarrow", "numpy", "pandas", "Cython"])
    assert is_there
    assert len(modules) <= MOST_MODULES, modules
    assert not any(name.startswith(("kafkacore.consumer", "kafkacore.record")) for name in modules)


@formats
def test_without_pyspark_there_is_nothing_to_find_and_no_error(module):
    assert imported(module, without=["pyspark"])[1] is False


@pytest.mark.parametrize(
    "use",
    [
        lambda source: source.reader(None),
        lambda source: source.streamReader(None),
        lambda source: source.writer(None, False),
        lambda source: source.streamWriter(None, False),
    ],
)
def test_old_pyspark_gets_a_sentence_from_who_uses_the_source(monkeypatch, use):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'format\("kafkacore"\) needs PySpark 4\.2 or newer, and this is'):
        use(KafkaCoreDataSource({}))
