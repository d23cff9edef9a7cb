"""Parsing of option values that the source, the sink and the log-file source share.

``values`` parses one option, ``java_configs`` collects the ``kafka.…`` options under Java's names,
``client_arguments`` turns them into keyword arguments of our clients, and ``java_regex`` compiles
``subscribePattern``.
"""
