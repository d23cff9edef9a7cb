"""Cython declarations of ``_heartbeat``."""

cdef class ConsumerHeartbeat:
    cdef public str group_id, member_id, instance_id, rack_id, subscribed_topic_regex, server_assignor
    cdef public str client_id, client_host
    cdef public int member_epoch, rebalance_timeout_ms, version
    cdef public object subscribed_topic_names, topic_partitions

    cdef bint is_plain_now(self) noexcept


cdef class SteadyAnswer:
    cdef public int throttle_time_ms
    cdef readonly str member_id
    cdef readonly int member_epoch
    cdef readonly int heartbeat_interval_ms
