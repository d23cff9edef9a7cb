"""The writers of ``df.write`` and ``df.writeStream`` for ``format("kafkacore")``.

On the driver, ``options`` and ``columns`` check the options and the schema. Spark calls ``writers``. On a
worker, ``task`` sends the rows with a producer from ``producers``. For streams, ``exactly_once`` commits the
transactions of the tasks on the driver.
"""
