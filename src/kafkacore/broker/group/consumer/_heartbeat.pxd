"""Cython declarations of ``_heartbeat``."""

cdef class ConsumerHeartbeat:
    cdef public str group_id, member_id, instance_id, rack_id, subscribed_topic_regex, server_assignor
    cdef public str client_id, client_host
    cdef public int member_epoch, rebalance_timeout_ms, version
    cdef public object subscribed_topic_names, topic_partitions

    cdef bint is_plain_now(self) noexcept
