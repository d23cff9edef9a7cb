"""No unit test sleeps, or waits for another thread with a limit of its own: the limit is ``BUDGET_S``.

What a name alone shows is in pyproject.toml, at ``banned-api``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parent
#: Classes whose objects threads wait for, by the real clock.
WAITED_FOR = {
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "Future",
    "Lock",
    "RLock",
    "Semaphore",
    "Thread",
}
WAITS = {"acquire", "join", "result", "wait", "wait_for"}
#: Functions, and methods of sockets, that wait by the real clock whatever they are called on.
OTHERS = {"create_connection", "settimeout", "urlopen", "sleep"}


def last_name(node: ast.expr) -> str:
    """The ``c`` of ``a.b.c``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def waited_for(tree: ast.Module) -> set[str]:
    """Names and attributes to which such an object is assigned."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            for target, value in zip(targets, values, strict=False):
                if isinstance(value, ast.Call) and last_name(value.func) in WAITED_FOR:
                    found.add(last_name(target))
    return found


def own_limits(source: str) -> Iterator[int]:
    """Lines in which something waits for as long as a number says."""
    tree = ast.parse(source)
    names = waited_for(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        is_made_here = isinstance(of, ast.Call) and last_name(of.func) in WAITED_FOR
        is_wait = node.func.attr in WAITS and (is_made_here or last_name(of) in names)
        if is_wait or (node.func.attr in OTHERS and last_name(of) != "clock"):
            limits = [*node.args[-1:], *(word.value for word in node.keywords if word.arg == "timeout")]
            if any(
                isinstance(one, ast.Constant) and isinstance(one.value, int | float) and one.value
                for one in limits
            ):
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
    ],
)
def test_budget_and_virtual_time_are_fine(source: str) -> None:
    assert not list(own_limits(source))


def test_no_unit_test_has_a_limit_of_its_own() -> None:
    found = [
        f"{path.relative_to(UNIT)}:{line}"
        for path in sorted(UNIT.rglob("*.py"))
        for line in own_limits(path.read_text())
    ]
    assert not found, "wait by eventually(), or with BUDGET_S"
