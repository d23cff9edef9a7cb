/* Sends a prepared heartbeat request periodically on a connection, from its own thread that does not use Python. See
   _native_heartbeat.pyx for the rules. Any thread may call any function, except that only the thread that uses the
   connection may call the begin and end functions of writes and reads. */
#ifndef KAFKACORE_NATIVE_HEARTBEAT_IMPL_H
#define KAFKACORE_NATIVE_HEARTBEAT_IMPL_H

#include <stddef.h>
#include <stdint.h>

/* Events to report, as flags. */
enum {
    KC_HEARTBEAT_WOKEN = 1,
    KC_HEARTBEAT_CLOSED = 2,
    KC_HEARTBEAT_DISCONNECTED = 4,
    KC_HEARTBEAT_ERROR_ANSWER = 8,
    KC_HEARTBEAT_SILENT = 16,
    KC_HEARTBEAT_POLL_OVERDUE = 32,
    KC_HEARTBEAT_UNREAD = 64,
    KC_HEARTBEAT_BLOCKED = 128
};

typedef struct kc_heartbeat kc_heartbeat;

/* The request and the layout of its response. `error_at` is the offset of the error code in a response, not counting
   the size field. With `has_tags`, a byte of 0 follows the correlation id. */
typedef struct {
    const uint8_t *frame;
    size_t frame_size;
    size_t error_at;
    int has_tags;
    int64_t interval_ns;
    int64_t session_ns;
} kc_beat;

/* Returns NULL and sets errno on failure. Correlation ids cycle through first_id .. first_id + id_count - 1. */
kc_heartbeat *kc_heartbeat_new(uint32_t first_id, uint32_t id_count, int has_manual_clock);
/* Call only after kc_heartbeat_close or in a forked child. */
void kc_heartbeat_free(kc_heartbeat *heartbeat);
/* Stop the thread and wait until it has stopped. */
void kc_heartbeat_close(kc_heartbeat *heartbeat);

int64_t kc_heartbeat_now_ns(void);
/* Advance the manual clock, which starts at 0. Returns after the thread has handled what is due at the new time. */
void kc_heartbeat_advance(kc_heartbeat *heartbeat, int64_t by_ns);

void kc_heartbeat_attach(kc_heartbeat *heartbeat, int fd, int is_mid_frame, int is_within_frame);
/* Returns 1 if a heartbeat was partly written, so that the connection must be closed; else 0. */
int kc_heartbeat_detach(kc_heartbeat *heartbeat);
/* Returns 0 or the negative errno. The first call starts the thread. */
int kc_heartbeat_begin(kc_heartbeat *heartbeat, const kc_beat *beat);
void kc_heartbeat_end(kc_heartbeat *heartbeat);
/* Returns whether the condition reported by KC_HEARTBEAT_SILENT still holds. */
int kc_heartbeat_is_silent(kc_heartbeat *heartbeat);
void kc_heartbeat_polled(kc_heartbeat *heartbeat, int64_t deadline_ns);
/* Record that a response was read. Returns whether it is to a heartbeat since the last kc_heartbeat_begin. */
int kc_heartbeat_answered(kc_heartbeat *heartbeat, uint32_t id);
void kc_heartbeat_report(kc_heartbeat *heartbeat, int event);
/* Wait for events until `until_ns`. Returns the pending events, or 0 after a time-out. */
int kc_heartbeat_wait(kc_heartbeat *heartbeat, int64_t until_ns);

/* Call before the connection writes. Returns 1 if it may write, 0 if the socket cannot even accept the rest of a partly
   written heartbeat, or the negative errno. In every case the mutex is held until kc_heartbeat_end_write. */
int kc_heartbeat_begin_write(kc_heartbeat *heartbeat);
void kc_heartbeat_end_write(kc_heartbeat *heartbeat, int is_mid_frame);
/* Call before and after the connection reads. The thread does not peek in between. */
void kc_heartbeat_begin_read(kc_heartbeat *heartbeat);
void kc_heartbeat_end_read(kc_heartbeat *heartbeat, int is_within_frame);

typedef struct {
    uint64_t sent_count;
    int64_t last_sent_ns;   /* 0 before the first heartbeat. */
    int64_t last_answer_ns; /* Time of the last response or of kc_heartbeat_begin. */
    int error_code;         /* Error code of the last unread response that has one. */
    int is_beating;
    int is_attached;
} kc_heartbeat_state;

void kc_heartbeat_get_state(kc_heartbeat *heartbeat, kc_heartbeat_state *state);

#endif
