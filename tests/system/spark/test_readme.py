"""The Spark example of README.md runs."""

from peers.shown_code import page_blocks


def test_stream_of_the_readme_has_the_columns_that_it_names(spark, our_broker):
    places = {"localhost:9092": our_broker.bootstrap_servers}
    [block] = [block for block in page_blocks("README.md", places) if "readStream" in block.code]
    names = {}
    exec(block.code, names)
    assert names["spark"] is spark
    assert names["stream"].isStreaming
    wanted = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert names["stream"].columns == wanted
