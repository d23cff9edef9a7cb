"""The Spark session that commands start."""

import os

import pyspark


def where_pyspark_is(batches):
    import pandas
    import pyspark

    for _ in batches:
        yield pandas.DataFrame({"folder": pyspark.__path__})


def test_workers_import_pyspark_from_the_package_instead_of_compiling_sparks_archive(spark):
    found = spark.range(1).mapInPandas(where_pyspark_is, "folder string").collect()
    assert [os.path.realpath(row.folder) for row in found] == [os.path.realpath(pyspark.__path__[0])]
