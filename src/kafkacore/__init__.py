"""kafkacore: the fastest way from Python to Apache Kafka.

    socket → Selector → KafkaChannel → NetworkReceive → message → record batch → Fetcher → KafkaConsumer
    socket ← Selector ← KafkaChannel ← NetworkSend    ← message ← record batch ← Sender  ← KafkaProducer

Layers, lowest first; a module imports only lower ones (``tests/test_layers.py``)::

    0 errors, structs, clock   1 wire   2 protocol, record   3 network   4 client
    5 producer, consumer, broker   6 spark   7 cli, testing
"""
