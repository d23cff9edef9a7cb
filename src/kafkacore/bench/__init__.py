"""``kafkacore bench``: clients measured against each other, on a cluster of yours or on the embedded broker.

Options in (``options``), a result that a program can read out (``result``). Each client runs in a process of
its own (``worker`` and ``peers``), round by round in turn (``runner``), and every record is counted
(``sequence``, ``verify``). Does not know: the command line, terminals.

Nothing is imported here: a worker that runs another client has no use for ours, and pays for it in memory.
"""
