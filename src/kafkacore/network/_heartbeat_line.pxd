"""HeartbeatLine for Cython callers."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "heartbeat_line_impl.h" nogil:
    enum:
        KC_LINE_WOKEN

    ctypedef struct kc_line:
        pass

    ctypedef struct kc_beat:
        const uint8_t *frame
        size_t frame_size
        size_t error_at
        int has_tags
        int64_t interval_ns
        int64_t session_ns

    ctypedef struct kc_line_state:
        uint64_t sent_count
        int64_t last_sent_ns
        int64_t last_answer_ns
        int error_code
        int is_beating
        int is_attached

    # Linked into this module alone: others call the methods.
    kc_line *kc_line_new(uint32_t first_id, uint32_t id_count)
    void kc_line_free(kc_line *line)
    void kc_line_close(kc_line *line)
    int64_t kc_line_now_ns()
    void kc_line_attach(kc_line *line, int fd, int is_mid_frame, int is_within_frame)
    int kc_line_detach(kc_line *line)
    int kc_line_begin(kc_line *line, const kc_beat *beat)
    void kc_line_end(kc_line *line)
    void kc_line_polled(kc_line *line, int64_t deadline_ns)
    int kc_line_is_silent(kc_line *line)
    int kc_line_answered(kc_line *line, uint32_t id)
    void kc_line_tell(kc_line *line, int notice)
    int kc_line_wait(kc_line *line, int64_t until_ns)
    int kc_line_begin_write(kc_line *line)
    void kc_line_end_write(kc_line *line, int is_mid_frame)
    void kc_line_begin_read(kc_line *line)
    void kc_line_end_read(kc_line *line, int is_within_frame)
    void kc_line_look(kc_line *line, kc_line_state *state)

cdef class HeartbeatLine:
    cdef kc_line *handle
    # Of the process that made it; a forked child has no thread, and perhaps a locked mutex.
    cdef int fork_generation
    # Of the connection it is attached to. Held, so that nothing but a close after `detach` gives its
    # descriptor to another file.
    cdef object sock

    cdef kc_line_state state(self) noexcept
    cdef int check_usable(self) except -1
    cdef bint is_foreign(self) noexcept nogil
    cdef int attach(self, object sock, int fd, bint is_mid_frame, bint is_within_frame) except -1
    cdef bint detach(self) except -1
    cdef int begin_write(self) noexcept nogil
    cdef void end_write(self, bint is_mid_frame) noexcept nogil
    cdef void begin_read(self) noexcept nogil
    cdef void end_read(self, bint is_within_frame) noexcept nogil
