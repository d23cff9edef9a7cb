"""Progress reports of long-running commands when the output is a pipe."""

from kafkacore.cli.report import Reporter
from kafkacore.testing import VirtualClock


def test_a_pipe_gets_plain_lines_at_a_pace(capsys):
    clock = VirtualClock()
    with Reporter(clock=clock).step("Produce", 1000) as advance:
        for done in range(0, 1001, 100):
            clock.advance(500)
            advance(done, f"; {done / 500:g} behind")
    assert capsys.readouterr().err.splitlines() == [
        "Produce ...",
        "Produce: 300 of 1,000 records; 0.6 behind",
        "Produce: 700 of 1,000 records; 1.4 behind",
        "Produce: done, 1,000 records in 5.5 s",
    ]


def test_a_failing_step_is_not_reported_as_done(capsys):
    try:
        with Reporter(clock=VirtualClock()).step("Produce"):
            raise OSError
    except OSError:
        pass
    assert capsys.readouterr().err.splitlines() == ["Produce ..."]


def test_quiet_says_nothing(capsys):
    reporter = Reporter(quiet=True)
    reporter.say("hello")
    with reporter.step("Produce") as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")
