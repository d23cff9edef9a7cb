"""What a consumer is and does as a member of a group: joining, heartbeats, committed offsets.

Answers of the coordinator in, an assignment out. Does not know: fetching, records.
"""
