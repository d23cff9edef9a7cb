"""The status page of a broker, the same data as JSON, and its metrics for Prometheus.

``collector`` takes snapshots of the broker, ``page.html`` and ``prometheus_text`` present them, and
``http_status`` serves them on a port of its own, to this machine only. The package never changes the broker.
"""
