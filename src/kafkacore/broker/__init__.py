"""The embedded broker: it speaks Kafka's wire protocol and stores durable logs on disk.

``process`` runs a broker in this process or as a child process, and ``config.BrokerConfig`` configures it. A
request passes from ``server`` to a module of ``handlers``, then to ``replica`` and ``log``. The response is
sent at once, or the request waits in ``purgatory``.
"""
