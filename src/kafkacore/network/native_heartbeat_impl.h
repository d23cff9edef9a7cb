/* Writes a ready-made frame on a connection again and again, by a thread of its own that knows no Python; see
   native_heartbeat.pyx for the rules. Any thread may call any function, but those of a write and of a read belong to the
   thread that uses the connection. The mutex inside is never held while anybody waits for anything else. */
#ifndef KAFKACORE_NATIVE_HEARTBEAT_IMPL_H
#define KAFKACORE_NATIVE_HEARTBEAT_IMPL_H

#include <stddef.h>
#include <stdint.h>

/* Events to report; several at once are combined by OR. */
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

/* What is written, and what its answers look like. `error_at` is where an answer, without its size, has its error
   code; with `has_tags` a byte of 0 follows its correlation id. */
typedef struct {
    const uint8_t *frame;
    size_t frame_size;
    size_t error_at;
    int has_tags;
    int64_t interval_ns;
    int64_t session_ns;
} kc_beat;

/* NULL with errno set. Correlation ids are first_id .. first_id + id_count - 1, again and again. */
kc_heartbeat *kc_heartbeat_new(uint32_t first_id, uint32_t id_count, int has_manual_clock);
/* After kc_heartbeat_close, or in a forked child. */
void kc_heartbeat_free(kc_heartbeat *heartbeat);
/* End the thread, and wait for its end. */
void kc_heartbeat_close(kc_heartbeat *heartbeat);

int64_t kc_heartbeat_now_ns(void);
/* Advance the manual clock, which starts at 0. Returns after the thread has done what is due at the new time. */
void kc_heartbeat_advance(kc_heartbeat *heartbeat, int64_t by_ns);

void kc_heartbeat_attach(kc_heartbeat *heartbeat, int fd, int is_mid_frame, int is_within_frame);
/* 1 if a beat had gone out in part: the connection is of no use then. */
int kc_heartbeat_detach(kc_heartbeat *heartbeat);
/* 0, or the negative errno; starts the thread if there is none yet. */
int kc_heartbeat_begin(kc_heartbeat *heartbeat, const kc_beat *beat);
void kc_heartbeat_end(kc_heartbeat *heartbeat);
/* What KC_HEARTBEAT_SILENT has told, while it holds. */
int kc_heartbeat_is_silent(kc_heartbeat *heartbeat);
void kc_heartbeat_polled(kc_heartbeat *heartbeat, int64_t deadline_ns);
/* An answer that has been read: whether it is to a beat of the last kc_heartbeat_begin. */
int kc_heartbeat_answered(kc_heartbeat *heartbeat, uint32_t id);
void kc_heartbeat_report(kc_heartbeat *heartbeat, int event);
/* Wait until there is an event to report, at most until `until_ns`; 0 then. */
int kc_heartbeat_wait(kc_heartbeat *heartbeat, int64_t until_ns);

/* Before the connection writes: 1 if it may, 0 if there is no room even for the rest of a beat, or the negative errno.
   What holds the mutex until kc_heartbeat_end_write, in every case. */
int kc_heartbeat_begin_write(kc_heartbeat *heartbeat);
void kc_heartbeat_end_write(kc_heartbeat *heartbeat, int is_mid_frame);
/* Around a read of the connection; nothing is looked at meanwhile. */
void kc_heartbeat_begin_read(kc_heartbeat *heartbeat);
void kc_heartbeat_end_read(kc_heartbeat *heartbeat, int is_within_frame);

typedef struct {
    uint64_t sent_count;
    int64_t last_sent_ns;   /* 0: none yet. */
    int64_t last_answer_ns; /* Or when beating began. */
    int error_code;         /* Of the last answer that was seen unread and had one. */
    int is_beating;
    int is_attached;
} kc_heartbeat_state;

void kc_heartbeat_look(kc_heartbeat *heartbeat, kc_heartbeat_state *state);

#endif
