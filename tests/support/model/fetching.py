"""Steps of a Fetcher on a :class:`~model.consumer_cluster.ModelCluster`: send, receive, collect."""

from kafkacore.protocol.generated.fetch import FetchRequest


def fetch(parts, timeout_ms=0):
    """Send fetch requests, receive the responses, and return the number of requests."""
    sent = parts.fetcher.send_fetches()
    parts.client.poll_no_wakeup(timeout_ms)
    parts.client.poll_no_wakeup()
    return sent


def collect(parts, max_records=1000):
    """Collect the fetched records and return their offsets by partition."""
    found = parts.fetcher.collect_records(max_records).records
    return {tp: [record.offset for record in records] for tp, records in found.items()}


def fetch_requests(parts):
    return parts.cluster.requests_of(FetchRequest)
