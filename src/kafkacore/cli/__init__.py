"""The ``kafkacore`` command: ``main`` is the entry, each other module a command or what several share."""
