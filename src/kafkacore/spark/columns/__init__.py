"""The columns of Spark's built-in ``kafka`` source: their schema, and record batches with these columns."""
