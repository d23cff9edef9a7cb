"""Settings of clients, the broker, topics, listeners and Spark.

``setting`` defines a setting, ``checks`` validates the keyword arguments of clients, and ``texts`` parses
properties and options. Each component has a table of its settings. The typed signatures of the clients
and the reference of the documentation are generated from the tables.
"""

from __future__ import annotations

from kafkacore.settings.setting import Check, Config, Setting, SettingType, suggestion, table

#: The protocols of clients (``security_protocol``) and of listeners.
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

__all__ = ["SECURITY_PROTOCOLS", "Check", "Config", "Setting", "SettingType", "suggestion", "table"]
