"""The sticky assignors' common parts: previous owners, racks, and the two algorithms.

In: subscriptions with what members owned, partitions. Out: assignments that move little. Does not know:
requests.
"""
