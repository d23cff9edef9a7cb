"""The embedded broker: Kafka's wire protocol in, durable logs on disk, one node.

``run.run_broker(config)`` runs one, ``process.BrokerProcess`` holds one as a child process,
``config.BrokerConfig`` says how. The way of a request: ``socket_server`` → ``kafka_apis`` → one of
``handlers`` → ``replica_manager`` → ``log``, and back at once or through ``delayed_operation``.
"""
