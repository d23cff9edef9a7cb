"""``kafkacore bench spark``: Spark's reads and writes by ``format("kafkacore")`` against those by Spark's own
``format("kafka")``, on one cluster.

Options in (``options``), a result of the same shape as the other modes' out (``runner``). What is asked of
Spark is data (``job``, made by ``rows``): a program of its own runs it (``driver``) and says what the JVM and
the Python processes have used (``processes``). Does not know: our source; Spark finds it as a user's would.
"""
