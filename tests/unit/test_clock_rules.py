"""Unit tests never sleep, and wait for other threads only with the limit ``BUDGET_S``.

They create no clock of the machine's time either. ruff finds what names alone reveal (``banned-api`` in
pyproject.toml), and ``conftest.py`` detects readings of a default clock.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parent
#: Classes with methods that wait on the real clock.
WAITED_FOR = {
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "Future",
    "Lock",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Thread",
}
WAITS = {"acquire", "get", "join", "put", "result", "wait", "wait_for"}
#: Functions and socket methods that always use the real clock.
OTHERS = {"create_connection", "settimeout", "urlopen", "sleep"}
#: Nodes that one of the rules looks at.
LOOKED_AT = (ast.AnnAssign, ast.Assign, ast.Call, ast.ClassDef, ast.arguments)


def last_name(node: ast.expr) -> str:
    """Return ``c`` of ``a.b.c``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@functools.cache
def nodes_of(source: str) -> list[ast.AST]:
    """Return the nodes of the source that the rules look at. Most nodes are names and constants."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, LOOKED_AT)]


def waited_for(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and attributes to which an instance of ``WAITED_FOR`` is assigned."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            for target, value in zip(targets, values, strict=False):
                if isinstance(value, ast.Call) and last_name(value.func) in WAITED_FOR:
                    found.add(last_name(target))
    return found


def is_number(node: ast.expr, constants: set[str]) -> bool:
    """Return whether the node is a number other than 0, a constant name of one, or computed from them."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool) and bool(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in constants
        case ast.UnaryOp(operand=operand):
            return is_number(operand, constants)
        case ast.BinOp(left=left, right=right):
            return is_number(left, constants) and is_number(right, constants)
        case ast.IfExp(body=body, orelse=orelse):
            return is_number(body, constants) or is_number(orelse, constants)
    return False


def numbers(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and attributes to which only numbers are assigned, such as constants."""
    assigned: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Tuple):
                        values = value.elts if isinstance(value, ast.Tuple) else [None] * len(target.elts)
                        for name, one in zip(target.elts, values, strict=False):
                            assigned.setdefault(last_name(name), []).append(one)
                    else:
                        assigned.setdefault(last_name(target), []).append(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                assigned.setdefault(last_name(target), []).append(value)
            case ast.arguments():
                known = [*node.posonlyargs, *node.args]
                defaults = [None] * (len(known) - len(node.defaults)) + node.defaults
                for argument, default in zip(
                    [*known, *node.kwonlyargs], [*defaults, *node.kw_defaults], strict=True
                ):
                    assigned.setdefault(argument.arg, []).append(default)
    found: set[str] = set()
    while True:
        more = {
            name
            for name, values in assigned.items()
            if all(value is not None and is_number(value, found) for value in values)
        }
        if more == found:
            return found - {""}
        found = more


def own_limits(source: str) -> Iterator[int]:
    """Yield the lines with a wait whose limit is a number or a constant."""
    nodes = nodes_of(source)
    names, constants = waited_for(nodes), numbers(nodes)
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        is_made_here = isinstance(of, ast.Call) and last_name(of.func) in WAITED_FOR
        is_wait = node.func.attr in WAITS and (is_made_here or last_name(of) in names)
        if is_wait or (node.func.attr in OTHERS and last_name(of) != "clock"):
            limits = [*node.args[-1:], *(word.value for word in node.keywords if word.arg == "timeout")]
            if any(is_number(limit, constants) for limit in limits):
                yield node.lineno


def real_clocks(source: str) -> Iterator[int]:
    """Yield the lines that create a clock of the machine's time, or subclass one."""
    for node in nodes_of(source):
        if isinstance(node, ast.Call):
            made = [node.func]
        elif isinstance(node, ast.ClassDef):
            made = node.bases
        else:
            continue
        if "Clock" in map(last_name, made):
            yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        "Event().wait(0.1)",
        "threading.Event().wait(timeout=1)",
        "thread = threading.Thread(target=f)\nthread.join(5)",
        "self.thread = Thread(target=f)\nself.thread.join(5)",
        "a, b = Event(), Event()\nb.wait(5)",
        "condition = threading.Condition()\ncondition.wait_for(ready, 5)",
        "await asyncio.sleep(0.1)",
        "peer.settimeout(5)",
        "socket.create_connection(address, timeout=5)",
        "queue.Queue().get(timeout=5)",
        "LIMIT_S = 5\nthreading.Event().wait(LIMIT_S)",
        "LIMIT_S: Final = 5.0\nevent = Event()\nevent.wait(timeout=2 * LIMIT_S)",
        "A = 5\nB = A + 1\npeer.settimeout(B)",
        "class T:\n    limit = 3\n    def f(self):\n        peer.settimeout(self.limit)",
        "def f(event, limit_s=5):\n    peer.settimeout(limit_s)",
        "long, short = 5, 1\nthread = Thread(target=f)\nthread.join(long)",
        "peer.settimeout(60 if is_slow else BUDGET_S)",
    ],
)
def test_own_limit_is_found(source: str) -> None:
    assert len(list(own_limits(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "thread = threading.Thread(target=f)\nthread.join(BUDGET_S)",
        "event = threading.Event()\nevent.wait()",
        "b', '.join(parts)",
        "result.wait(100)",
        "await asyncio.sleep(0)",
        "clock.sleep(5)",
        "LIMIT_S = BUDGET_S\nEvent().wait(LIMIT_S)",
        "Event().wait(2 * BUDGET_S)",
        "def f(limit_s):\n    peer.settimeout(limit_s)",
        "left_s = 5\nleft_s = deadline_s - now_s\npeer.settimeout(left_s)",
        "for limit_s in limits:\n    peer.settimeout(limit_s)",
    ],
)
def test_budget_and_virtual_time_are_fine(source: str) -> None:
    assert not list(own_limits(source))


@pytest.mark.parametrize(
    "source", ["Clock().monotonic_ms()", "kafkacore.clock.Clock(seed=7)", "class Mine(Clock):\n    pass"]
)
def test_real_clock_is_found(source: str) -> None:
    assert list(real_clocks(source)) == [1]


@pytest.mark.parametrize("source", ["VirtualClock()", "BlockingClock()", "def f(clock: Clock) -> None: ..."])
def test_other_clocks_are_fine(source: str) -> None:
    assert not list(real_clocks(source))


def test_no_unit_test_has_a_limit_of_its_own() -> None:
    found = [
        f"{path.relative_to(UNIT)}:{line}"
        for path in sorted(UNIT.rglob("*.py"))
        for line in own_limits(path.read_text())
    ]
    assert not found, "wait by eventually(), or with BUDGET_S"


def test_no_unit_test_makes_a_real_clock() -> None:
    found = [
        f"{path.relative_to(UNIT)}:{line}"
        for path in sorted(UNIT.rglob("*.py"))
        if path != UNIT / "test_clock.py"
        for line in real_clocks(path.read_text())
    ]
    assert not found, "use VirtualClock, or model.blocking_clock.BlockingClock where a thread waits"
