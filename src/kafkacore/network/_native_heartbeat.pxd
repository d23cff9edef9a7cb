"""NativeHeartbeat for Cython callers."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "native_heartbeat_impl.h" nogil:
    enum:
        KC_HEARTBEAT_WOKEN

    ctypedef struct kc_heartbeat:
        pass

    ctypedef struct kc_beat:
        const uint8_t *frame
        size_t frame_size
        size_t error_at
        int has_tags
        int64_t interval_ns
        int64_t session_ns

    ctypedef struct kc_heartbeat_state:
        uint64_t sent_count
        int64_t last_sent_ns
        int64_t last_answer_ns
        int error_code
        int is_beating
        int is_attached

    # Only the module of NativeHeartbeat is linked with these functions. Other modules call the methods of the
    # class.
    kc_heartbeat *kc_heartbeat_new(uint32_t first_id, uint32_t id_count, int has_manual_clock)
    void kc_heartbeat_free(kc_heartbeat *heartbeat)
    void kc_heartbeat_close(kc_heartbeat *heartbeat)
    int64_t kc_heartbeat_now_ns()
    void kc_heartbeat_advance(kc_heartbeat *heartbeat, int64_t by_ns)
    void kc_heartbeat_attach(kc_heartbeat *heartbeat, int fd, int is_mid_frame, int is_within_frame)
    int kc_heartbeat_detach(kc_heartbeat *heartbeat)
    int kc_heartbeat_begin(kc_heartbeat *heartbeat, const kc_beat *beat)
    void kc_heartbeat_end(kc_heartbeat *heartbeat)
    void kc_heartbeat_polled(kc_heartbeat *heartbeat, int64_t deadline_ns)
    int kc_heartbeat_is_silent(kc_heartbeat *heartbeat)
    int kc_heartbeat_answered(kc_heartbeat *heartbeat, uint32_t id)
    void kc_heartbeat_report(kc_heartbeat *heartbeat, int event)
    int kc_heartbeat_wait(kc_heartbeat *heartbeat, int64_t until_ns)
    int kc_heartbeat_begin_write(kc_heartbeat *heartbeat)
    void kc_heartbeat_end_write(kc_heartbeat *heartbeat, int is_mid_frame)
    void kc_heartbeat_begin_read(kc_heartbeat *heartbeat)
    void kc_heartbeat_end_read(kc_heartbeat *heartbeat, int is_within_frame)
    void kc_heartbeat_get_state(kc_heartbeat *heartbeat, kc_heartbeat_state *state)

cdef class NativeHeartbeat:
    cdef kc_heartbeat *handle
    # Fork generation of the process that created the heartbeat. A forked child lacks the thread, and its
    # copy of the mutex may be locked.
    cdef int fork_generation
    cdef bint has_manual_clock
    # Socket of the attached connection. The reference keeps the descriptor open until `detach`, so that no
    # other file gets the same number.
    cdef object sock

    cdef kc_heartbeat_state state(self) noexcept
    cdef int check_usable(self) except -1
    cdef bint is_foreign(self) noexcept nogil
    cdef int attach(self, object sock, int fd, bint is_mid_frame, bint is_within_frame) except -1
    cdef bint detach(self) except -1
    cdef int begin_write(self) noexcept nogil
    cdef void end_write(self, bint is_mid_frame) noexcept nogil
    cdef void begin_read(self) noexcept nogil
    cdef void end_read(self, bint is_within_frame) noexcept nogil
