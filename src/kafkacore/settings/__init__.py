"""Settings of clients, the broker, topics, listeners and Spark: one type of row, its checks and its parsers.

``setting`` has the row of a table, ``checks`` the values that a keyword argument of a client may have, and
``texts`` the parsers of properties and options. Each component keeps the table of its own rows;
``tools/settings.py`` writes typed signatures and the tables of the documentation from them.
"""

from __future__ import annotations

from kafkacore.settings.setting import Check, Config, Setting, SettingType, suggestion, table

#: The values of ``security_protocol``, and what a listener may speak.
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

__all__ = ["SECURITY_PROTOCOLS", "Check", "Config", "Setting", "SettingType", "suggestion", "table"]
