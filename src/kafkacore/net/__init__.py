"""kafka-python's import path of token providers, ``kafka.net.sasl.oauth``."""
