"""Where the broker listens, and who may enter: addresses, TLS, SASL, limits of connections.

Does not know: requests, topics, logs.
"""
