"""Files of the broker: the disk as it fails, the identity of a folder, checked JSON, allocated producer ids.

Does not know: logs, topics, requests.
"""
