"""Parsing of options, shared by the source, the sink and the segment file source.

``values`` parses single options. ``java_configs`` selects the ``kafka.*`` options, which have the names of
Java's clients. ``client_arguments`` converts them to keyword arguments of kafkacore's clients. ``java_regex``
compiles ``subscribePattern``.
"""
