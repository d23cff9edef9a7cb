"""The ``kafkacore`` command: ``main`` is the entry point; the other modules are commands and shared code."""
