"""Rounds of a Fetcher before a :class:`~model.consumer_cluster.ModelCluster`: one question, one answer, one
collect.
"""

from kafkacore.protocol.generated.fetch import FetchRequest


def fetch(parts, timeout_ms=0):
    """One round: ask, and let the answers come in. The number of requests."""
    sent = parts.fetcher.send_fetches()
    parts.client.poll_no_wakeup(timeout_ms)
    parts.client.poll_no_wakeup()
    return sent


def collect(parts, max_records=1000):
    """Partition → offsets."""
    found = parts.fetcher.collect_records(max_records).records
    return {tp: [record.offset for record in records] for tp, records in found.items()}


def fetch_requests(parts):
    return parts.cluster.requests_of(FetchRequest)
