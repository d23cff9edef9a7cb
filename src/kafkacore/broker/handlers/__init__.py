"""Handlers of the broker's APIs, one file per API: each turns a decoded request into a response message.

The docstring of each file lists the versions that it serves and the known differences from Apache Kafka.
"""
