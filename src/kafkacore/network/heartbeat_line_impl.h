/* Writes a ready-made frame on a connection again and again, by a thread of its own that knows no Python; see
   heartbeat_line.pyx for the rules. Any thread may call any function, but those of a write and of a read belong to the
   thread that uses the connection. The mutex inside is never held while anybody waits for anything else. */
#ifndef KAFKACORE_HEARTBEAT_LINE_IMPL_H
#define KAFKACORE_HEARTBEAT_LINE_IMPL_H

#include <stddef.h>
#include <stdint.h>

/* What there is to tell; several at once are added. */
enum {
    KC_LINE_WOKEN = 1,
    KC_LINE_CLOSED = 2,
    KC_LINE_DISCONNECTED = 4,
    KC_LINE_ERROR_ANSWER = 8,
    KC_LINE_SILENT = 16,
    KC_LINE_POLL_OVERDUE = 32,
    KC_LINE_UNREAD = 64,
    KC_LINE_BLOCKED = 128
};

typedef struct kc_line kc_line;

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
kc_line *kc_line_new(uint32_t first_id, uint32_t id_count);
/* After kc_line_close, or in a forked child. */
void kc_line_free(kc_line *line);
/* End the thread, and wait for its end. */
void kc_line_close(kc_line *line);

int64_t kc_line_now_ns(void);

void kc_line_attach(kc_line *line, int fd, int is_mid_frame, int is_within_frame);
/* 1 if a beat had gone out in part: the connection is of no use then. */
int kc_line_detach(kc_line *line);
/* 0, or the negative errno; starts the thread if there is none yet. */
int kc_line_begin(kc_line *line, const kc_beat *beat);
void kc_line_end(kc_line *line);
/* What KC_LINE_SILENT has told, while it holds. */
int kc_line_is_silent(kc_line *line);
void kc_line_polled(kc_line *line, int64_t deadline_ns);
/* An answer that has been read: whether it is to a beat of the last kc_line_begin. */
int kc_line_answered(kc_line *line, uint32_t id);
void kc_line_tell(kc_line *line, int notice);
/* Wait until there is something to tell, at most until `until_ns`; 0 then. */
int kc_line_wait(kc_line *line, int64_t until_ns);

/* Before the connection writes: 1 if it may, 0 if there is no room even for the rest of a beat, or the negative errno.
   What holds the mutex until kc_line_end_write, in every case. */
int kc_line_begin_write(kc_line *line);
void kc_line_end_write(kc_line *line, int is_mid_frame);
/* Around a read of the connection; nothing is looked at meanwhile. */
void kc_line_begin_read(kc_line *line);
void kc_line_end_read(kc_line *line, int is_within_frame);

typedef struct {
    uint64_t sent_count;
    int64_t last_sent_ns;   /* 0: none yet. */
    int64_t last_answer_ns; /* Or when beating began. */
    int error_code;         /* Of the last answer that was seen unread and had one. */
    int is_beating;
    int is_attached;
} kc_line_state;

void kc_line_look(kc_line *line, kc_line_state *state);

#endif
