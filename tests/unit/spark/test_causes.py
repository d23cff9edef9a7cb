"""The one-line cause of a long error from Spark."""

import pytest

from kafkacore.spark.causes import last_cause

STREAM = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: Failed: Traceback (most recent call last):"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{STREAM}\n  File\nkafkacore.errors.KafkaTimeoutError: no: broker\n SQLSTATE: 38000", "no: broker"),
        (
            f"{STREAM}\n  File\nValueError: first\n\nDuring handling of the above\n\n"
            "Traceback (most recent call last):\nUnboundLocalError: cannot access local variable 'reader'",
            "first",
        ),
        (
            "[TABLE_NOT_FOUND] no such table\njava.lang.RuntimeException: deep",
            "[TABLE_NOT_FOUND] no such table",
        ),
        ("a\n  [MALFORMED_RECORD_IN_PARSING] bad row\nb", "[MALFORMED_RECORD_IN_PARSING] bad row"),
        (
            "An error occurred while calling o55.start.\n: org.apache.hadoop.fs.ParentNotDirectoryException: "
            "Parent path is not a directory: file:/a\n\tat org.apache.hadoop.fs.FileSystem.mkdirs(F.java:1)",
            "Parent path is not a directory: file:/a",
        ),
        ("An error occurred while calling o1.stop", "An error occurred while calling o1.stop"),
        ("", "the query failed without a message"),
    ],
)
def test_last_cause_is_one_line(text, line):
    assert last_cause(text) == line
