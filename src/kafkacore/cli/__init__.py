"""The ``kafkacore`` command. ``main`` is the entry; each other module is one command, or what several
share.
"""
