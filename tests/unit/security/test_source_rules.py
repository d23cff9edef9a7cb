"""Rules that hold for every line of the package.

No module loads code that a configuration, a record or a peer names, and none logs a configuration. The
exceptions are listed with their reasons.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src"
#: Modules that create objects or code from bytes.
LOADERS = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "yaml", "runpy", "code", "imp"}
#: Functions that run or import code given as text.
RUNNERS = {"eval", "exec", "compile", "__import__", "execfile"}
#: Files that import a module by a variable name, which comes from a table or a listing of the package.
TABLES = {
    "kafkacore/__init__.py": "public names, by a table",
    "kafkacore/testing/__init__.py": "public names, by a table",
    "kafkacore/spark/__init__.py": "public names, by a table",
    "kafkacore/protocol/registry.py": "one generated module for each API key",
    "kafkacore/record/compression.py": "the library of each codec, by the table of codecs",
    "kafkacore/security/sasl/mechanism.py": "one module for each built-in mechanism",
    "kafkacore/cli/main.py": "one module for each command",
    "kafkacore/bench/peers/__init__.py": "one module for each client that is measured",
    "kafkacore/coordinator/assignors/strategy.py": "the modules of its own package, as its folder lists them",
    "kafkacore/broker/handlers/registry.py": "the modules of its own package, as its folder lists them",
}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LOGGERS = {"log", "logger", "_log", "_logger", "LOG"}
#: Names of objects that may contain a secret.
WHOLE = re.compile(
    r"(^|_)(configs?|settings|options|properties|password|passwd|secret|token|credentials?|environ|arguments"
    r"|kwargs|jaas|client_configs|auth_bytes)$"
)
CYTHON_LOG = re.compile(r"\blog\.(?:debug|info|warning|error|exception|critical)\(\s*(f\"|f'|[^\"'\s])")
CYTHON_RUN = re.compile(
    r"(?<![\w.])(eval|exec|__import__)\s*\(|^\s*c?import\s+(pickle|marshal|shelve)\b", re.M
)


def breaches(text: str, place: str) -> Iterator[str]:
    """Yield a message for each breach of a rule in a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                if name.split(".")[0] in LOADERS:
                    yield f"{place}:{node.lineno} imports {name}"
        elif isinstance(node, ast.Call):
            yield from _call(node, place)


def _call(node: ast.Call, place: str) -> Iterator[str]:
    called = node.func
    name = (
        called.id
        if isinstance(called, ast.Name)
        else called.attr
        if isinstance(called, ast.Attribute)
        else ""
    )
    where = f"{place}:{node.lineno}"
    is_nothing = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == ""
    if isinstance(called, ast.Name) and name in RUNNERS and not is_nothing:
        yield f"{where} calls {name}"
    if (
        name == "import_module"
        and place not in TABLES
        and not (node.args and isinstance(node.args[0], ast.Constant))
    ):
        yield f"{where} imports what a value says"
    if (name == "system" and _last_name(getattr(called, "value", called)) == "os") or any(
        word.arg == "shell"
        and name != "complete"
        and not (isinstance(word.value, ast.Constant) and word.value.value is False)
        for word in node.keywords
    ):
        yield f"{where} runs a shell"
    if isinstance(called, ast.Attribute) and name in LEVELS and _is_logger(called.value):
        yield from _logged(node, where)


def _is_logger(value: ast.expr) -> bool:
    return _last_name(value) in LOGGERS


def _last_name(value: ast.expr) -> str:
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""


def _logged(node: ast.Call, where: str) -> Iterator[str]:
    text, *values = node.args[1:] if _last_name(node.func) == "log" else node.args
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        yield f"{where} logs a text that is put together: its parts cannot be looked at"
    for value in [*values, *(word.value for word in node.keywords)]:
        if WHOLE.search(_last_name(value)):
            yield f"{where} logs {_last_name(value)}, which may have a secret in it"


def cython_breaches(text: str, place: str) -> Iterator[str]:
    """Yield a message for each breach in Cython code, which is searched by line, without a parser."""
    for rule in (CYTHON_LOG, CYTHON_RUN):
        for match in rule.finditer(re.sub(r"#[^\n]*", "", text)):
            yield f"{place}: {match[0].strip()}"


MODULES = sorted(SOURCE.rglob("*.py"))
CYTHON = sorted(path for ending in ("pyx", "pxd") for path in SOURCE.rglob(f"*.{ending}"))


def place_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("package", sorted({place_of(path).split("/")[1] for path in MODULES}))
def test_no_module_loads_what_it_is_told_or_logs_a_configuration(package: str) -> None:
    mine = [path for path in MODULES if place_of(path).split("/")[1] == package]
    assert [breach for path in mine for breach in breaches(path.read_text(), place_of(path))] == []


def test_no_compiled_module_does() -> None:
    assert len(CYTHON) > 30
    assert [breach for path in CYTHON for breach in cython_breaches(path.read_text(), place_of(path))] == []


def test_every_exception_is_needed() -> None:
    found = {place: list(breaches((SOURCE / place).read_text(), f"../src/{place}")) for place in TABLES}
    assert [place for place, breach in found.items() if not breach] == []


# ---- Tests of the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "def f():\n    import marshal",
        "eval(config['x'])",
        "exec(text)",
        "exec('import this')",
        "__import__(name)",
        "importlib.import_module(config['serializer'])",
        "from importlib import import_module\nimport_module(f'{name}')",
        "os.system(command)",
        "subprocess.run(command, shell=True)",
        "log.debug('made with %s', config)",
        "log.debug('made with %s', self.config)",
        "self._log.info('made with %r', settings)",
        "log.log(10, 'made with %s', client_configs)",
        "log.info(f'made with {config}')",
        "log.info('made with %s' % config)",
        "log.warning('{}'.format(password))",
        "log.error('login of %s failed', sasl_password)",
        "logger.debug('request %s', self._request.auth_bytes)",
    ],
)
def test_rule_bites(line: str) -> None:
    assert list(breaches(line, "kafkacore/thing.py"))


@pytest.mark.parametrize(
    "line",
    [
        "import_module('botocore.session')",
        "re.compile(text)",
        "exec('')",
        "log.debug('%s: asking again', type(request).__name__)",
        "log.info('the configuration of %s', topic)",
        "log.append(config)",
        "subprocess.run(command, shell=False)",
    ],
)
def test_rule_lets_pass_what_may(line: str) -> None:
    assert list(breaches(line, "kafkacore/thing.py")) == []


@pytest.mark.parametrize("line", ["    log.info(f'{x}')", "log.debug(config)", "eval(text)", "import pickle"])
def test_rule_of_compiled_modules_bites(line: str) -> None:
    assert list(cython_breaches(line, "kafkacore/thing.pyx"))
