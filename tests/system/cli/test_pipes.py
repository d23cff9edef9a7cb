"""``produce`` and ``consume`` in a shell's pipe, and on a terminal."""

import os
import pty
import shlex
import signal
import subprocess
import sys

from eventually import BUDGET_S
from model.shown_terminal import shown_on

KAFKACORE = f"{shlex.quote(sys.executable)} -m kafkacore"


def shell(script, servers):
    """Run a script of bash, in which a pipe fails with its first command that fails."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("kafkacore ", f"{KAFKACORE} ")],
        capture_output=True,
        timeout=BUDGET_S,
        env={**os.environ, "KAFKACORE_BOOTSTRAP": servers},
    )


def test_records_go_through_pipes(our_broker):
    done = shell(
        r"""
        printf 'a:1\nb:\nc:NULL\n' | kafkacore produce pipe-a -K : --null NULL -H from=pipe
        kafkacore consume pipe-a --from-beginning --exit --json | kafkacore produce pipe-b --json
        kafkacore consume pipe-b --from-beginning --exit -f '%k=%s,%S,%h\0'
        kafkacore consume pipe-b --from-beginning --exit -f '%k=%s\n' | head -n 1
        """,
        our_broker.bootstrap_servers,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"a=1,1,from=pipe\0b=,0,from=pipe\0c=null,-1,from=pipe\0a=1\n"


def test_stream_that_is_closed_is_like_the_null_device(our_broker, make_topic):
    topic = make_topic([b"one"])
    done = shell(
        f"""
        kafkacore topics list >&-
        kafkacore consume {topic} --from-beginning --exit >&-
        kafkacore produce {topic} <&-
        ! kafkacore topics list -b 127.0.0.1:1 2>&-
        """,
        our_broker.bootstrap_servers,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_records_are_printed_on_a_terminal(our_broker, make_topic):
    topic = make_topic([b"one", b"two"])
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "kafkacore", "consume", topic, "--last", "2", "--exit"]
    done = subprocess.run(
        [*command, "-b", our_broker.bootstrap_servers],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        timeout=BUDGET_S,
    )
    os.close(terminal)
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown_on(ours) == b"one\r\ntwo\r\n"
    os.close(ours)


def test_interrupt_on_a_terminal_is_reported_on_a_line_of_its_own(our_broker, make_topic):
    topic = make_topic([b"one"])
    ours, terminal = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-m", "kafkacore", "consume", topic, "--from-beginning"],
        env={**os.environ, "KAFKACORE_BOOTSTRAP": our_broker.bootstrap_servers},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
        # The test runner may ignore Ctrl-C, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(terminal)
    assert command.stdout.readline() == b"one\n"
    command.send_signal(signal.SIGINT)
    assert command.wait(BUDGET_S) == 130
    command.stdout.close()
    assert shown_on(ours) == b"\r\nkafkacore: interrupted\r\n"
    os.close(ours)


def test_script_of_bash_completes_words(our_broker):
    done = shell(
        r"""
        source <(kafkacore completion bash)
        for words in "cons" "topics cre" "consume t --form" "produce t --compression l"; do
            COMP_WORDS=(kafkacore $words) COMP_CWORD=$(wc -w <<< "$words") COMPREPLY=()
            _shtab_kafkacore
            echo "${COMPREPLY[@]}"
        done
        """.replace("(kafkacore $words)", "('kafkacore' $words)"),
        our_broker.bootstrap_servers,
    )
    assert done.stdout.decode().splitlines() == ["consume", "create", "--format", "lz4"], done.stderr
