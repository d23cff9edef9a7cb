"""What a running broker shows of itself: a page, the same as JSON, and figures for Prometheus.

``collector`` looks at the broker, ``prometheus_text`` and ``page.html`` say what it has seen, ``http_status``
serves both on a port of their own, to this machine alone. Nothing here changes anything.
"""
