"""The demo in this process, on one Spark session: repeated, reset, and with tampered files."""

import json
import os

import pandas as pd
import pytest
from eventually import BUDGET_S

from kafkacore import KafkaProducer
from kafkacore.broker.process.process import BrokerProcess
from kafkacore.cli.demo import Folder, _logged_in
from kafkacore.cli.main import main

RECORDS = "2000"
FIRST = "first.parquet"
#: A run of the demo takes a few seconds on an idle machine, and much longer on a busy one.
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory):
    """Return the demo's folder after a first run."""
    root = tmp_path_factory.mktemp("demo") / "run"
    assert main(["demo", "--dir", str(root), "--records", RECORDS]) == 0
    # Keep a copy, because some tests tamper with the result.
    pd.read_parquet(Folder(root).aggregate).to_parquet(root.parent / FIRST)
    return Folder(root)


def again(folder, *arguments):
    return main(["demo", "--dir", str(folder.root), "--records", RECORDS, *arguments])


def test_second_run_adds_nothing(finished, capsys):
    before = sorted(finished.parquet.rglob("*.parquet"))
    assert again(finished, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    done = {step["name"]: step["records"] for step in summary["steps"]}
    assert "produce" not in done
    assert (done["Spark to Parquet"], done["check against pandas"]) == (0, int(RECORDS))
    assert sorted(finished.parquet.rglob("*.parquet")) == before


def test_plain_summary_names_every_step_and_place(finished, capsys):
    assert again(finished) == 0
    shown = capsys.readouterr().out
    for word in (
        "start Spark",
        "records/s",
        "CPU seconds",
        "total",
        str(finished.chart),
        "equals that of pandas",
    ):
        assert word in shown


def test_missing_file_of_the_sink_is_a_mismatch_and_fresh_mends_it(finished, capsys):
    next(finished.parquet.rglob("*.parquet")).unlink()
    assert again(finished) == 1
    shown = capsys.readouterr().err
    assert "MISMATCH: cannot read the Parquet files" in shown
    assert "Traceback" not in shown
    (finished.root / "notes.txt").write_text("mine")
    assert again(finished, "--fresh") == 0
    assert (finished.root / "notes.txt").exists()


def test_record_of_another_hand_is_a_mismatch_each_time(finished, capsys):
    with (
        BrokerProcess(data_dir=finished.broker) as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
    ):
        producer.send("flights", b'{"carrier":"ZZ","month":1,"year":2013,"day":1}').get(timeout=BUDGET_S)
    for _ in range(2):
        assert again(finished) == 1
        assert "MISMATCH: 2,000 records in the data set, 2,001 acknowledged" in capsys.readouterr().err


def test_over_tls_and_with_a_login_the_result_is_the_same(finished, tmp_path, capsys):
    root = tmp_path / "secure"
    arguments = ("demo", "--dir", str(root), "--records", RECORDS, "--security-protocol", "sasl_ssl")
    assert main([*arguments]) == 0
    shown = capsys.readouterr()
    assert "with SASL_SSL and SCRAM-SHA-512" in shown.out + shown.err
    assert "equals that of pandas" in shown.out
    order = ["carrier", "month"]
    results = (finished.root.parent / FIRST, Folder(root).aggregate)
    plain, secure = (pd.read_parquet(each).sort_values(order) for each in results)
    pd.testing.assert_frame_equal(
        secure.reset_index(drop=True), plain.reset_index(drop=True), rtol=1e-9, check_dtype=False
    )
    assert not (root / "password").exists()


@pytest.mark.usefixtures("spark")
def test_exactly_once_adds_nothing_in_a_second_run(tmp_path, capsys):
    folder = Folder(tmp_path / "once")
    assert again(folder, "--exactly-once") == 0
    assert "equals that of pandas" in capsys.readouterr().out
    before = sorted(folder.parquet.rglob("*.parquet"))
    assert again(folder, "--exactly-once", "--json") == 0
    done = {step["name"]: step["records"] for step in json.loads(capsys.readouterr().out)["steps"]}
    assert "produce" not in done
    assert (done["copy exactly once"], done["Spark to Parquet"]) == (0, 0)
    assert sorted(folder.parquet.rglob("*.parquet")) == before
    assert again(folder) == 1
    assert "has a run with --exactly-once: add --fresh" in capsys.readouterr().err


def test_interrupted_login_leaves_no_password(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(KeyboardInterrupt), _logged_in(folder, "SASL_SSL") as options:  # noqa: PT012
        (reference,) = options.values()
        assert reference == f"${{file:{folder.password}}}"
        assert folder.password.stat().st_mode & 0o777 == 0o600
        raise KeyboardInterrupt
    assert not folder.password.exists()


def test_folder_that_cannot_be_referred_to_is_a_sentence(tmp_path, capsys):
    root = tmp_path / "{a}"
    assert main(["demo", "--dir", str(root), "--records", "10", "--security-protocol", "SASL_SSL"]) == 1
    assert "the path must not contain braces or commas" in capsys.readouterr().err


def test_only_one_demo_works_in_a_folder(tmp_path, capsys):
    folder = Folder(tmp_path / "demo")
    with folder.opened(fresh=False, records=10):
        assert main(["demo", "--dir", str(folder.root), "--fresh"]) == 1
    assert "another demo is running" in capsys.readouterr().err


def test_damaged_marker_is_a_sentence(tmp_path, capsys):
    folder = Folder(tmp_path)
    folder.marker.write_text("")
    assert main(["demo", "--dir", str(tmp_path)]) == 1
    assert "is damaged: add --fresh" in capsys.readouterr().err


def test_place_that_is_no_folder_is_a_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--dir", str(tmp_path / "file")]) == 1
    assert main(["demo", "--dir", os.devnull + "/x"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"kafkacore: {tmp_path}/file: Not a directory",
        "kafkacore: /dev/null/x: Not a directory",
    ]


def test_missing_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["demo", "--dir", str(tmp_path / "new")]) == 2
    assert "pip install 'kafkacore[demo]'" in capsys.readouterr().err
