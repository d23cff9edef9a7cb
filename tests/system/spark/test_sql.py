"""SQL only: views that are read and written, and options of a table in each query."""

import pytest
from pyspark.errors import PySparkException


@pytest.fixture
def options(our_broker):
    """Return a function that formats options as ``(name='value', …)`` for SQL."""

    def of(**more):
        given = {"kafka.bootstrap.servers": our_broker.bootstrap_servers} | more
        return "(" + ", ".join(f"'{name}' = '{value}'" for name, value in given.items()) + ")"

    return of


@pytest.fixture
def view(spark):
    """Return a function that creates temporary views. They are dropped after the test."""
    made = []

    def create(name, rest):
        spark.sql(f"CREATE TEMPORARY VIEW {name} {rest}")
        made.append(name)
        return name

    yield create
    for name in made:
        spark.catalog.dropTempView(name)


@pytest.fixture
def table(spark, options):
    spark.sql(
        f"CREATE TABLE sql_table (value BINARY) USING kafkacore OPTIONS {options(subscribe='t', topic='t')}"
    )
    yield "sql_table"
    spark.sql("DROP TABLE sql_table")


def test_what_is_inserted_into_a_view_is_read_by_another(spark, make_topic, options, view):
    topic = make_topic()
    target = view("target", f"(key BINARY, value BINARY) USING kafkacore OPTIONS {options(topic=topic)}")
    source = view("source", f"USING kafkacore OPTIONS {options(subscribe=topic)}")
    spark.sql(f"INSERT INTO {target} VALUES (CAST('k' AS BINARY), CAST('v' AS BINARY))")
    (row,) = spark.sql(f"SELECT CAST(key AS STRING), CAST(value AS STRING) FROM {source}").collect()
    assert tuple(row) == ("k", "v")


def test_options_of_a_table_are_given_with_each_query(spark, make_topic, options, table):
    topic = make_topic()
    spark.sql(f"INSERT INTO {table} WITH {options(topic=topic)} VALUES (CAST('v' AS BINARY))")
    (row,) = spark.sql(f"SELECT * FROM {table} WITH {options(subscribe=topic)}").collect()
    assert bytes(row.value) == b"v"


def test_spark_hands_on_no_options_of_a_table(spark, table):
    with pytest.raises(PySparkException, match=r"kafka\.bootstrap\.servers is missing"):
        spark.sql(f"SELECT * FROM {table}").collect()
