"""Settings of clients, the broker, topics, listeners and Spark.

``client_setting`` defines a setting of a client, and ``setting`` one of the other components. ``checks``
validates the keyword arguments of clients, and ``texts`` parses properties and options. Each component has a
table of its settings. The typed signatures of the clients and the reference of the documentation are
generated from the tables.
"""

from __future__ import annotations

from kafkacore.settings.client_setting import Check, ClientSetting
from kafkacore.settings.tables import Config, SettingType, suggestion, table

#: The protocols of clients (``security_protocol``) and of listeners.
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

__all__ = ["SECURITY_PROTOCOLS", "Check", "ClientSetting", "Config", "SettingType", "suggestion", "table"]
