#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include "heartbeat_line_impl.h"
#include "wakeup.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef POLLRDHUP
#define POLLRDHUP 0 /* Then the end is seen when the next beat is due. */
#endif

#define KC_NEVER INT64_MAX
#define KC_MS 1000000LL
/* Of a request: size, API key and version before the correlation id. */
#define KC_REQUEST_ID_AT 8
/* Unread bytes that are looked through: the answers of half an hour. */
#define KC_PEEK_SIZE 8192
/* As many are worth being read, by whoever can. */
#define KC_MUCH_UNREAD 2048
/* After a beat its answer is looked for, at first after so long; and again while somebody reads this moment. */
#define KC_LOOK_NS (50 * KC_MS)
#define KC_STACK_SIZE (256 * 1024)

struct kc_line {
    pthread_mutex_t mutex;
    pthread_cond_t told;
    int wake_fds[2];
    pthread_t thread;
    int has_thread, is_stopping;

    /* The connection; -1 for none. Each gets a number, for who has waited with the last one's. */
    int fd;
    unsigned attachment;
    int is_gone;         /* The peer is. */
    int is_mid_frame;    /* The connection has written a part of a frame. */
    int is_reading;
    int is_within_frame; /* The connection has read a part of a frame. */
    int wants_end_of_frame;

    int is_beating;
    kc_beat beat; /* `frame` is ours. */
    uint8_t *frame;
    uint8_t *rest; /* Of a beat that went out in part; as large as any frame. */
    size_t rest_capacity, rest_at, rest_size;

    uint32_t first_id, id_count;
    /* Beats are counted; the id of one is first_id and its number modulo id_count. The next, the first since
       kc_line_begin, and the one behind the last that is answered. */
    uint64_t next_beat, begun_beat, unanswered_beat;

    int64_t next_beat_ns, next_look_ns;
    _Atomic int64_t poll_deadline_ns;

    int told_already; /* Since kc_line_begin. */
    atomic_int is_silent;
    int pending;
    kc_line_state state;
    uint8_t peeked[KC_PEEK_SIZE];
};

int64_t kc_line_now_ns(void) {
    struct timespec now;
#ifdef __APPLE__
    clock_gettime(CLOCK_UPTIME_RAW, &now); /* What Python's time.monotonic() reads. */
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t later(int64_t from_ns, int64_t by_ns) {
    return by_ns > KC_NEVER - from_ns ? KC_NEVER : from_ns + by_ns;
}

/* ---- Waking ------------------------------------------------------------------------------------------------ */

static void wake(kc_line *line) { kc_wakeup_signal(line->wake_fds[1]); }

static void tell(kc_line *line, int notice) {
    if (line->told_already & notice)
        return;
    line->told_already |= notice & ~(KC_LINE_WOKEN | KC_LINE_CLOSED);
    line->pending |= notice;
    pthread_cond_broadcast(&line->told);
}

/* ---- Life -------------------------------------------------------------------------------------------------- */

kc_line *kc_line_new(uint32_t first_id, uint32_t id_count) {
    kc_line *line = calloc(1, sizeof(*line));
    pthread_condattr_t attributes;
    if (line == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int error = kc_wakeup_open(line->wake_fds);
    if (error < 0) {
        free(line);
        errno = -error;
        return NULL;
    }
    pthread_mutex_init(&line->mutex, NULL);
    pthread_condattr_init(&attributes);
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&line->told, &attributes);
    pthread_condattr_destroy(&attributes);
    line->fd = -1;
    line->first_id = first_id;
    line->id_count = id_count;
    atomic_init(&line->poll_deadline_ns, KC_NEVER);
    return line;
}

void kc_line_free(kc_line *line) {
    kc_wakeup_close(line->wake_fds);
    free(line->frame);
    free(line->rest);
    free(line);
}

void kc_line_close(kc_line *line) {
    pthread_mutex_lock(&line->mutex);
    int has_thread = line->has_thread;
    line->is_stopping = 1;
    line->is_beating = 0;
    line->has_thread = 0;
    tell(line, KC_LINE_CLOSED);
    wake(line);
    pthread_mutex_unlock(&line->mutex);
    if (has_thread)
        pthread_join(line->thread, NULL);
}

/* ---- What has been received, and not yet read ---------------------------------------------------------------- */

static uint32_t load_uint32(const uint8_t *at) {
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

static void store_uint32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t) (value >> 24);
    at[1] = (uint8_t) (value >> 16);
    at[2] = (uint8_t) (value >> 8);
    at[3] = (uint8_t) value;
}

/* An answer to a beat: its number, or UINT64_MAX if none of the last kc_line_begin has this id. */
static uint64_t beat_of(const kc_line *line, uint32_t id) {
    if (id - line->first_id >= line->id_count || line->next_beat == line->begun_beat)
        return UINT64_MAX;
    uint64_t last = line->next_beat - 1;
    uint32_t last_id = (uint32_t) (last % line->id_count);
    uint32_t back = (last_id + line->id_count - (id - line->first_id)) % line->id_count;
    return back > last - line->begun_beat ? UINT64_MAX : last - back;
}

static void take_answer(kc_line *line, uint64_t beat, int64_t now_ns) {
    if (beat >= line->unanswered_beat) {
        line->unanswered_beat = beat + 1;
        line->state.last_answer_ns = now_ns;
        atomic_store(&line->is_silent, 0);
        line->told_already &= ~KC_LINE_SILENT;
    }
}

/* One frame of them. */
static void take_frame(kc_line *line, const uint8_t *payload, size_t size, int64_t now_ns) {
    if (size < 4)
        return;
    uint64_t beat = beat_of(line, load_uint32(payload));
    /* Of none, or already there at the last look. */
    if (beat == UINT64_MAX || beat < line->unanswered_beat)
        return;
    take_answer(line, beat, now_ns);
    if (size < line->beat.error_at + 2 || (line->beat.has_tags && payload[4] != 0)) {
        tell(line, KC_LINE_UNREAD); /* Who can read more than this shall do it. */
        return;
    }
    int code = (int16_t) (payload[line->beat.error_at] << 8 | payload[line->beat.error_at + 1]);
    if (code != 0) {
        line->state.error_code = code;
        tell(line, KC_LINE_ERROR_ANSWER);
    }
}

/* Look through what lies in the socket and take nothing out of it. Whether all of it could be seen. */
static int look(kc_line *line, int64_t now_ns) {
    ssize_t got;
    if (line->is_reading)
        return 0;
    do
        got = recv(line->fd, line->peeked, KC_PEEK_SIZE, MSG_PEEK | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
        line->is_gone = 1;
        tell(line, KC_LINE_DISCONNECTED);
    }
    if (got <= 0)
        return 1;
    if (line->is_within_frame) {
        tell(line, KC_LINE_UNREAD);
        return 0;
    }
    const uint8_t *at = line->peeked;
    size_t left = (size_t) got;
    while (left >= 4) {
        uint32_t size = load_uint32(at);
        if (size > left - 4)
            break; /* Not whole yet, longer than what is looked at, or no size at all. */
        take_frame(line, at + 4, size, now_ns);
        at += 4 + size;
        left -= 4 + size;
    }
    if (got >= KC_MUCH_UNREAD)
        tell(line, KC_LINE_UNREAD);
    return got < KC_PEEK_SIZE;
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

/* Bytes sent, 0 if there is no room, or the negative errno. */
static ssize_t send_some(int fd, const uint8_t *from, size_t size) {
    ssize_t sent;
    do
        sent = send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    return sent;
}

static void lose(kc_line *line) {
    line->is_gone = 1;
    tell(line, KC_LINE_DISCONNECTED);
}

/* The rest of a beat: 1 when it is out, 0 if there is no room, or the negative errno. */
static int write_rest(kc_line *line) {
    while (line->rest_size > 0) {
        ssize_t sent = send_some(line->fd, line->rest + line->rest_at, line->rest_size);
        if (sent <= 0)
            return (int) sent;
        line->rest_at += (size_t) sent;
        line->rest_size -= (size_t) sent;
    }
    return 1;
}

static void write_beat(kc_line *line, int64_t now_ns) {
    store_uint32(line->frame + KC_REQUEST_ID_AT, line->first_id + (uint32_t) (line->next_beat % line->id_count));
    ssize_t sent = send_some(line->fd, line->frame, line->beat.frame_size);
    if (sent < 0) {
        lose(line);
        return;
    }
    line->next_beat_ns = later(now_ns, line->beat.interval_ns);
    if (sent == 0)
        return; /* The socket is full of what nobody takes: the next one may find room. */
    line->next_beat++;
    line->state.sent_count++;
    line->state.last_sent_ns = now_ns;
    line->next_look_ns = later(now_ns, KC_LOOK_NS);
    line->rest_at = 0;
    line->rest_size = line->beat.frame_size - (size_t) sent;
    memcpy(line->rest, line->frame + sent, line->rest_size);
}

int kc_line_begin_write(kc_line *line) {
    pthread_mutex_lock(&line->mutex);
    return line->rest_size > 0 ? write_rest(line) : 1;
}

void kc_line_end_write(kc_line *line, int is_mid_frame) {
    line->is_mid_frame = is_mid_frame;
    if (!is_mid_frame && line->wants_end_of_frame) {
        line->wants_end_of_frame = 0;
        line->told_already &= ~KC_LINE_BLOCKED;
        wake(line);
    }
    pthread_mutex_unlock(&line->mutex);
}

void kc_line_begin_read(kc_line *line) {
    pthread_mutex_lock(&line->mutex);
    line->is_reading = 1;
    pthread_mutex_unlock(&line->mutex);
}

void kc_line_end_read(kc_line *line, int is_within_frame) {
    pthread_mutex_lock(&line->mutex);
    line->is_reading = 0;
    line->is_within_frame = is_within_frame;
    line->told_already &= ~KC_LINE_UNREAD;
    pthread_mutex_unlock(&line->mutex);
}

/* ---- The thread ---------------------------------------------------------------------------------------------- */

static int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

/* Whether nothing has come for a session, as far as can be known. */
static void judge_silence(kc_line *line, int64_t now_ns) {
    if (look(line, now_ns) && now_ns >= later(line->state.last_answer_ns, line->beat.session_ns)) {
        atomic_store(&line->is_silent, 1);
        tell(line, KC_LINE_SILENT);
    }
}

/* Do what is due; the time of what comes next. */
static int64_t turn(kc_line *line, int64_t now_ns) {
    if (line->fd < 0 || line->is_gone)
        return KC_NEVER;
    if (line->rest_size > 0 && !line->is_mid_frame && write_rest(line) < 0) {
        lose(line);
        return KC_NEVER;
    }
    if (!line->is_beating)
        return KC_NEVER;
    int64_t poll_deadline_ns = atomic_load(&line->poll_deadline_ns);
    if (now_ns >= poll_deadline_ns) {
        tell(line, KC_LINE_POLL_OVERDUE);
        /* Nobody is woken by a poll that comes after all: it would cost every poll. */
        return later(now_ns, line->beat.interval_ns);
    }
    line->told_already &= ~KC_LINE_POLL_OVERDUE;
    if (now_ns >= line->next_beat_ns && line->rest_size == 0) {
        look(line, now_ns);
        if (line->is_mid_frame) {
            /* It may be for who has the connection to write on, and he may be busy elsewhere. */
            line->wants_end_of_frame = 1;
            tell(line, KC_LINE_BLOCKED);
        } else if (!line->is_gone) {
            write_beat(line, now_ns);
        }
    }
    if (now_ns >= line->next_look_ns) {
        /* Nobody has read the answer yet: what if it is an error? */
        if (line->unanswered_beat < line->next_beat)
            look(line, now_ns);
        int is_awaited = line->unanswered_beat < line->next_beat;
        line->next_look_ns = is_awaited ? later(now_ns, now_ns - line->state.last_sent_ns) : KC_NEVER;
    }
    int64_t silent_ns = later(line->state.last_answer_ns, line->beat.session_ns);
    if (now_ns >= silent_ns && !line->is_gone && !(line->told_already & KC_LINE_SILENT)) {
        judge_silence(line, now_ns);
        silent_ns = later(line->state.last_answer_ns, line->beat.session_ns);
        if (now_ns >= silent_ns)
            silent_ns = later(now_ns, KC_LOOK_NS);
    }
    if (line->told_already & KC_LINE_SILENT)
        silent_ns = KC_NEVER;
    if (line->is_gone)
        return KC_NEVER;
    /* Room in the socket, or the end of the frame, wakes. */
    int is_held = line->rest_size > 0 || line->wants_end_of_frame;
    int64_t next_ns = smaller(is_held ? KC_NEVER : line->next_beat_ns, line->next_look_ns);
    return smaller(smaller(next_ns, silent_ns), poll_deadline_ns);
}

/* Wait for what is watched; as poll(2). */
static int watch(struct pollfd *watched, int count, int64_t until_ns, int64_t now_ns) {
    int64_t left_ns = until_ns <= now_ns ? 0 : until_ns - now_ns;
#ifdef __linux__
    struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
    return ppoll(watched, (nfds_t) count, until_ns == KC_NEVER ? NULL : &left, NULL);
#else
    int64_t left_ms = left_ns / KC_MS + (left_ns % KC_MS != 0);
    return poll(watched, (nfds_t) count, until_ns == KC_NEVER ? -1 : left_ms > INT32_MAX ? INT32_MAX : (int) left_ms);
#endif
}

static void *beat_on(void *given) {
    kc_line *line = given;
    struct pollfd watched[2];
    pthread_mutex_lock(&line->mutex);
    while (!line->is_stopping) {
        int64_t now_ns = kc_line_now_ns();
        int64_t until_ns = turn(line, now_ns);
        unsigned attachment = line->attachment;
        int has_rest = line->rest_size > 0 && !line->is_mid_frame;
        int is_watched = !line->is_gone && (line->is_beating || has_rest);
        watched[0] = (struct pollfd){line->wake_fds[0], POLLIN, 0};
        watched[1] = (struct pollfd){is_watched ? line->fd : -1, (short) (POLLRDHUP | (has_rest ? POLLOUT : 0)), 0};
        pthread_mutex_unlock(&line->mutex);
        int found = watch(watched, 2, until_ns, now_ns);
        pthread_mutex_lock(&line->mutex);
        if (found <= 0)
            continue;
        if (watched[0].revents)
            kc_wakeup_drain(line->wake_fds[0]);
        /* Of another connection, or of another file with the same number: not ours any more. */
        if (line->attachment == attachment && (watched[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
            lose(line);
    }
    pthread_mutex_unlock(&line->mutex);
    return NULL;
}

static int start(kc_line *line) {
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, KC_STACK_SIZE);
    /* Signals are Python's main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&line->thread, &attributes, beat_on, line);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
#ifdef __linux__
    if (error == 0)
        pthread_setname_np(line->thread, "kafka-heartbeat");
#endif
    line->has_thread = error == 0;
    return -error;
}

/* ---- What is asked of it ------------------------------------------------------------------------------------- */

void kc_line_attach(kc_line *line, int fd, int is_mid_frame, int is_within_frame) {
    pthread_mutex_lock(&line->mutex);
    line->fd = fd;
    line->attachment++;
    line->is_gone = line->is_reading = line->wants_end_of_frame = 0;
    line->is_mid_frame = is_mid_frame;
    line->is_within_frame = is_within_frame;
    line->rest_size = 0;
    wake(line);
    pthread_mutex_unlock(&line->mutex);
}

int kc_line_detach(kc_line *line) {
    pthread_mutex_lock(&line->mutex);
    int is_cut = line->rest_size > 0;
    if (line->is_beating)
        tell(line, KC_LINE_DISCONNECTED);
    line->is_beating = 0;
    atomic_store(&line->is_silent, 0);
    line->fd = -1;
    line->attachment++;
    line->rest_size = 0;
    wake(line);
    pthread_mutex_unlock(&line->mutex);
    return is_cut;
}

/* Memory for a beat of this size, and for the rest of one; what is there of one is kept. */
static int reserve(kc_line *line, size_t size) {
    uint8_t *frame, *rest;
    if (size <= line->rest_capacity)
        return 0;
    if ((frame = realloc(line->frame, size)) != NULL)
        line->frame = frame;
    if ((rest = realloc(line->rest, size)) != NULL)
        line->rest = rest;
    if (frame == NULL || rest == NULL)
        return -ENOMEM;
    line->rest_capacity = size;
    return 0;
}

int kc_line_begin(kc_line *line, const kc_beat *beat) {
    if (beat->frame_size < KC_REQUEST_ID_AT + 4)
        return -EINVAL;
    pthread_mutex_lock(&line->mutex);
    int error = line->is_stopping ? -ESHUTDOWN : line->fd < 0 ? -ENOTCONN : reserve(line, beat->frame_size);
    if (error == 0 && !line->has_thread)
        error = start(line);
    if (error == 0) {
        int64_t now_ns = kc_line_now_ns();
        memcpy(line->frame, beat->frame, beat->frame_size);
        line->beat = *beat;
        line->beat.frame = line->frame;
        line->is_beating = 1;
        line->begun_beat = line->unanswered_beat = line->next_beat;
        line->state.last_answer_ns = now_ns;
        line->next_beat_ns = later(now_ns, beat->interval_ns);
        line->next_look_ns = KC_NEVER;
        line->pending &= KC_LINE_WOKEN | KC_LINE_CLOSED;
        line->told_already = 0;
        atomic_store(&line->is_silent, 0);
        line->state.error_code = 0;
        if (line->is_gone)
            tell(line, KC_LINE_DISCONNECTED);
        wake(line);
    } else if (error == -ENOTCONN) {
        line->told_already = 0;
        tell(line, KC_LINE_DISCONNECTED);
    }
    pthread_mutex_unlock(&line->mutex);
    return error;
}

void kc_line_end(kc_line *line) {
    pthread_mutex_lock(&line->mutex);
    atomic_store(&line->is_silent, 0);
    line->is_beating = 0;
    line->pending &= KC_LINE_WOKEN | KC_LINE_CLOSED;
    pthread_mutex_unlock(&line->mutex);
}

void kc_line_polled(kc_line *line, int64_t deadline_ns) { atomic_store(&line->poll_deadline_ns, deadline_ns); }

int kc_line_is_silent(kc_line *line) { return atomic_load(&line->is_silent); }

int kc_line_answered(kc_line *line, uint32_t id) {
    pthread_mutex_lock(&line->mutex);
    uint64_t beat = line->is_beating ? beat_of(line, id) : UINT64_MAX;
    int is_ours = beat != UINT64_MAX;
    if (is_ours) {
        take_answer(line, beat, kc_line_now_ns());
        /* An error that was seen unread has now been read. */
        line->told_already &= ~KC_LINE_ERROR_ANSWER;
    }
    pthread_mutex_unlock(&line->mutex);
    return is_ours;
}

void kc_line_tell(kc_line *line, int notice) {
    pthread_mutex_lock(&line->mutex);
    tell(line, notice);
    pthread_mutex_unlock(&line->mutex);
}

static void wait_until(kc_line *line, int64_t until_ns) {
    if (until_ns == KC_NEVER) {
        pthread_cond_wait(&line->told, &line->mutex);
        return;
    }
    struct timespec time;
#ifdef __APPLE__
    int64_t left_ns = until_ns - kc_line_now_ns();
    if (left_ns <= 0)
        return;
    time.tv_sec = left_ns / 1000000000;
    time.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait_relative_np(&line->told, &line->mutex, &time);
#else
    time.tv_sec = until_ns / 1000000000;
    time.tv_nsec = until_ns % 1000000000;
    pthread_cond_timedwait(&line->told, &line->mutex, &time);
#endif
}

int kc_line_wait(kc_line *line, int64_t until_ns) {
    pthread_mutex_lock(&line->mutex);
    while (line->pending == 0 && kc_line_now_ns() < until_ns)
        wait_until(line, until_ns);
    int pending = line->pending;
    line->pending = pending & KC_LINE_CLOSED; /* That stays true. */
    pthread_mutex_unlock(&line->mutex);
    return pending;
}

void kc_line_look(kc_line *line, kc_line_state *state) {
    pthread_mutex_lock(&line->mutex);
    *state = line->state;
    state->is_beating = line->is_beating && !line->is_gone;
    state->is_attached = line->fd >= 0;
    pthread_mutex_unlock(&line->mutex);
}
