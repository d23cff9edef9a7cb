"""``df.write`` and ``df.writeStream`` ``.format("kafkacore")``: rows of tasks in, acknowledged records out.

``options`` and ``columns`` (driver: what is asked and whether the rows fit) → ``writers`` (what Spark calls)
→ ``task`` (worker: batches to a producer of ``producers``) → ``exactly_once`` (streaming only: the driver
ends the tasks' transactions).
"""
