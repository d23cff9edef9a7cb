"""``produce`` and ``consume`` with keys, headers, tombstones, formats, positions, and several topics."""

import json

import pytest

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.cli.main import main


@pytest.fixture
def run(our_broker, tmp_path, capfdbinary):
    """Return a function that runs a command with our broker, checks its status, and returns its output."""

    def run(*arguments, lines=None, status=0):
        if lines is not None:
            (tmp_path / "lines").write_bytes(lines)
            arguments = (*arguments, "--file", str(tmp_path / "lines"))
        capfdbinary.readouterr()
        assert main([*arguments, "-b", our_broker.bootstrap_servers]) == status
        shown = capfdbinary.readouterr()
        return shown.err.decode() if status else shown.out

    return run


@pytest.fixture
def topic(our_broker, request):
    """Create a topic of two partitions that is named after the test."""
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2)])
    return topic


ALL = ("--from-beginning", "--exit")


def test_keys_headers_and_nulls_reach_the_output(run, topic):
    run("produce", topic, "-p", "1", "-K", "\\t", "--null", "NULL", "-H", "a=1", "-H", "b=x=y",
        lines=b"k\tv\nk\t\nk\tNULL\nNULL\tv\n\xff\t\x80\n")  # fmt: skip
    run("produce", topic, "-p", "1", "--key", "k", "--tombstone")
    run("produce", topic, "-p", "1", "--key", "k", "-Z", lines=b"\n")
    assert run("consume", topic, *ALL, "-Z", "-f", "%p %o %k(%K) %s(%S) [%h]\\n").splitlines() == [
        b"1 0 k(1) v(1) [a=1,b=x=y]",
        b"1 1 k(1) (0) [a=1,b=x=y]",
        b"1 2 k(1) NULL(-1) [a=1,b=x=y]",
        b"1 3 NULL(-1) v(1) [a=1,b=x=y]",
        b"1 4 \xff(1) \x80(1) [a=1,b=x=y]",
        b"1 5 k(1) NULL(-1) []",
        b"1 6 k(1) NULL(-1) []",
    ]
    assert run("consume", topic, *ALL, "--print-headers", "-K", ": ", "-c", "2") == (
        b"a=1,b=x=y\tk: v\na=1,b=x=y\tk: \n"
    )
    assert run("consume", topic, "-o", "-2", "-e", "--print-key") == b"k\tnull\nk\tnull\n"


def test_headers_are_added_to_lines_of_json(run, topic):
    run(
        "produce",
        topic,
        "--json",
        "--header",
        "b=2",
        lines=b'{"value":"v","headers":[{"key":"a","value":"1"}]}\n',
    )
    (line,) = run("consume", topic, *ALL, "--json").splitlines()
    assert [(h["key"], h["value"]) for h in json.loads(line)["headers"]] == [("a", "1"), ("b", "2")]


def test_positions_limit_what_is_printed(run, topic):
    lines = [json.dumps({"value": str(n), "timestamp": 1000 * n}).encode() for n in range(1, 9)]
    for partition in ("0", "1"):
        run("produce", topic, "--json", "-p", partition, lines=b"\n".join(lines[int(partition) :: 2]) + b"\n")

    def consumed(*arguments):
        return b"".join(sorted(run("consume", topic, *arguments).splitlines()))

    assert consumed("--from", "@3000", "--until", "@6000") == b"345"
    assert consumed("--from", "1", "--until", "3") == b"3456"
    assert consumed("--from", "-1", "--exit") == b"78"
    assert consumed("--from", "9", "--until", "end") == b""
    assert consumed("-p", "1", "-o", "2", "--exit") == b"68"
    assert run("consume", topic, "--last", "3", "--exit") == b"6\n7\n8\n"
    assert run("consume", topic, "--last", "99", "-p", "0", "--exit") == b"1\n3\n5\n7\n"


def test_topics_are_given_by_names_or_expressions(run, our_broker, topic):
    other = f"{topic}-other"
    run("produce", topic, lines=b"a\n")
    run("produce", other, lines=b"b\n")
    shown = run("consume", topic, other, *ALL, "-f", "%t %s,")
    assert sorted(shown.split(b",")) == [b"", f"{topic} a".encode(), f"{other} b".encode()]
    assert run("consume", f"{topic}-o.*", "x+", "--regex", *ALL) == b"b\n"
    assert run("consume", topic, "--regex", *ALL) == b"a\n"
    assert "no topic on" in run("consume", "x+", "--regex", *ALL, status=1)
    assert f"did you mean '{topic}'?" in run("consume", f"{topic}x", status=1)
    arguments = ("consume", f"{topic}.*", "--regex", "--group", topic, "--from-beginning", "-c", "2")
    assert sorted(run(*arguments).splitlines()) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["consume", "t", "--json", "-f", "%s"], "choose one output format: --json, --format"),
        (["consume", "t", "-f", "%x"], "unknown field %x"),
        (["consume", "t", "--until", "1h"], "--until needs a start"),
        (["consume", "t", "--until", "2999-01-01"], "--until 2999-01-01 is in the future"),
        (["consume", "t", "--last", "0"], "--last must be at least 1"),
        (["consume", "t", "--last", "1", "-c", "1"], "--last works neither with --max-records"),
        (["consume", "t", "--group", "g", "--from", "1h"], "--from does not work with --group"),
        (["consume", "t", "--group-protocol", "consumer"], "--group-protocol needs --group"),
        (["consume", "(", "--regex"], "'(' is not a valid regular expression"),
        (["produce", "t", "--tombstone"], "--tombstone needs --key"),
        (["produce", "t", "--json", "--key", "k"], "--json cannot be used with --key"),
        (["produce", "t", "-K", ""], "--key-delimiter must not be empty"),
        (["produce", "t", "-K", "\\q"], "unknown escape \\q"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(run, arguments, sentence):
    assert sentence in run(*arguments, status=2)
