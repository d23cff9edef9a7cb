"""The embedded broker: it speaks Kafka's wire protocol and stores durable logs on disk.

``process`` runs a broker in this process or as a child process, and ``config.BrokerConfig`` configures it. A
request passes through ``server``, one of ``handlers``, ``replica`` and ``log``. It is answered at once or
waits in ``purgatory``.
"""
