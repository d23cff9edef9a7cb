#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include "native_heartbeat_impl.h"
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
#define POLLRDHUP 0 /* Then a disconnect is detected when the next heartbeat is due. */
#endif

#define KC_NEVER INT64_MAX
#define KC_MS 1000000LL
/* Offset of the correlation id in a request, after size, API key and version. */
#define KC_REQUEST_ID_AT 8
/* Maximum unread bytes to peek at: the responses of half an hour. */
#define KC_PEEK_SIZE 8192
/* From this many unread bytes on, KC_HEARTBEAT_UNREAD asks the connection to read. */
#define KC_MUCH_UNREAD 2048
/* Delay from a heartbeat to the first peek for its response, and between checks for silence while the connection
   reads. */
#define KC_PEEK_DELAY_NS (50 * KC_MS)
#define KC_STACK_SIZE (256 * 1024)

struct kc_heartbeat {
    pthread_mutex_t mutex;
    pthread_cond_t event_reported;
    int wake_fds[2];
    pthread_t thread;
    int has_thread, is_stopping;

    /* For a manual clock: the current time, and the time up to which the thread has handled what was due. */
    int has_manual_clock;
    int64_t manual_ns, handled_ns;

    /* The connection's descriptor, or -1. `attachment` changes with the connection, so that the thread recognizes
       the result of a wait for an earlier one. */
    int fd;
    unsigned attachment;
    int is_disconnected;
    int is_mid_frame;    /* The connection has partly written a frame. */
    int is_reading;
    int is_within_frame; /* The connection has partly read a frame. */
    int wants_end_of_frame;

    int is_beating;
    kc_beat beat; /* `beat.frame` points to `frame`. */
    uint8_t *frame;
    uint8_t *rest; /* Copy of the unwritten bytes of a partly written heartbeat. */
    size_t rest_capacity, rest_at, rest_size;

    uint32_t first_id, id_count;
    /* Heartbeats are numbered; a correlation id is first_id + number % id_count. These are the numbers of the next
       heartbeat, of the first since kc_heartbeat_begin, and of the first without a response. */
    uint64_t next_beat, begun_beat, unanswered_beat;

    int64_t next_beat_ns, next_peek_ns;
    _Atomic int64_t poll_deadline_ns;

    int reported; /* Events reported since kc_heartbeat_begin, which are not reported again. */
    atomic_int is_silent;
    int pending;
    kc_heartbeat_state state;
    uint8_t peeked[KC_PEEK_SIZE];
};

int64_t kc_heartbeat_now_ns(void) {
    struct timespec now;
#ifdef __APPLE__
    clock_gettime(CLOCK_UPTIME_RAW, &now); /* What Python's time.monotonic() reads. */
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Return the time by which heartbeats, peeks and the session timeout are due. The mutex must be held. */
static int64_t clock_ns(const kc_heartbeat *heartbeat) {
    return heartbeat->has_manual_clock ? heartbeat->manual_ns : kc_heartbeat_now_ns();
}

static int64_t later(int64_t from_ns, int64_t by_ns) {
    return by_ns > KC_NEVER - from_ns ? KC_NEVER : from_ns + by_ns;
}

/* ---- Notification ------------------------------------------------------------------------------------------ */

static void wake(kc_heartbeat *heartbeat) { kc_wakeup_signal(heartbeat->wake_fds[1]); }

static void report(kc_heartbeat *heartbeat, int event) {
    if (heartbeat->reported & event)
        return;
    heartbeat->reported |= event & ~(KC_HEARTBEAT_WOKEN | KC_HEARTBEAT_CLOSED);
    heartbeat->pending |= event;
    pthread_cond_broadcast(&heartbeat->event_reported);
}

/* ---- Creation and closing ---------------------------------------------------------------------------------- */

kc_heartbeat *kc_heartbeat_new(uint32_t first_id, uint32_t id_count, int has_manual_clock) {
    kc_heartbeat *heartbeat = calloc(1, sizeof(*heartbeat));
    pthread_condattr_t attributes;
    if (heartbeat == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int error = kc_wakeup_open(heartbeat->wake_fds);
    if (error < 0) {
        free(heartbeat);
        errno = -error;
        return NULL;
    }
    pthread_mutex_init(&heartbeat->mutex, NULL);
    pthread_condattr_init(&attributes);
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&heartbeat->event_reported, &attributes);
    pthread_condattr_destroy(&attributes);
    heartbeat->fd = -1;
    heartbeat->first_id = first_id;
    heartbeat->id_count = id_count;
    heartbeat->has_manual_clock = has_manual_clock;
    atomic_init(&heartbeat->poll_deadline_ns, KC_NEVER);
    return heartbeat;
}

void kc_heartbeat_free(kc_heartbeat *heartbeat) {
    kc_wakeup_close(heartbeat->wake_fds);
    free(heartbeat->frame);
    free(heartbeat->rest);
    free(heartbeat);
}

void kc_heartbeat_close(kc_heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->mutex);
    int has_thread = heartbeat->has_thread;
    heartbeat->is_stopping = 1;
    heartbeat->is_beating = 0;
    heartbeat->has_thread = 0;
    report(heartbeat, KC_HEARTBEAT_CLOSED);
    wake(heartbeat);
    pthread_mutex_unlock(&heartbeat->mutex);
    if (has_thread)
        pthread_join(heartbeat->thread, NULL);
}

/* ---- Unread responses ---------------------------------------------------------------------------------------- */

static uint32_t load_uint32(const uint8_t *at) {
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

static void store_uint32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t) (value >> 24);
    at[1] = (uint8_t) (value >> 16);
    at[2] = (uint8_t) (value >> 8);
    at[3] = (uint8_t) value;
}

/* Return the number of the heartbeat with a correlation id, or UINT64_MAX if none since kc_heartbeat_begin has it. */
static uint64_t beat_of(const kc_heartbeat *heartbeat, uint32_t id) {
    if (id - heartbeat->first_id >= heartbeat->id_count || heartbeat->next_beat == heartbeat->begun_beat)
        return UINT64_MAX;
    uint64_t last = heartbeat->next_beat - 1;
    uint32_t last_id = (uint32_t) (last % heartbeat->id_count);
    uint32_t back = (last_id + heartbeat->id_count - (id - heartbeat->first_id)) % heartbeat->id_count;
    return back > last - heartbeat->begun_beat ? UINT64_MAX : last - back;
}

static void take_answer(kc_heartbeat *heartbeat, uint64_t beat, int64_t now_ns) {
    if (beat >= heartbeat->unanswered_beat) {
        heartbeat->unanswered_beat = beat + 1;
        heartbeat->state.last_answer_ns = now_ns;
        atomic_store(&heartbeat->is_silent, 0);
        heartbeat->reported &= ~KC_HEARTBEAT_SILENT;
    }
}

/* Handle one unread frame. */
static void take_frame(kc_heartbeat *heartbeat, const uint8_t *payload, size_t size, int64_t now_ns) {
    if (size < 4)
        return;
    uint64_t beat = beat_of(heartbeat, load_uint32(payload));
    /* Not a response to a heartbeat, or already seen by an earlier peek. */
    if (beat == UINT64_MAX || beat < heartbeat->unanswered_beat)
        return;
    take_answer(heartbeat, beat, now_ns);
    if (size < heartbeat->beat.error_at + 2 || (heartbeat->beat.has_tags && payload[4] != 0)) {
        report(heartbeat, KC_HEARTBEAT_UNREAD); /* Only the connection can parse this response. */
        return;
    }
    int code = (int16_t) (payload[heartbeat->beat.error_at] << 8 | payload[heartbeat->beat.error_at + 1]);
    if (code != 0) {
        heartbeat->state.error_code = code;
        report(heartbeat, KC_HEARTBEAT_ERROR_ANSWER);
    }
}

/* Peek at the unread responses in the socket. Return whether all unread bytes could be examined. */
static int peek(kc_heartbeat *heartbeat, int64_t now_ns) {
    ssize_t got;
    if (heartbeat->is_reading)
        return 0;
    do
        got = recv(heartbeat->fd, heartbeat->peeked, KC_PEEK_SIZE, MSG_PEEK | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
        heartbeat->is_disconnected = 1;
        report(heartbeat, KC_HEARTBEAT_DISCONNECTED);
    }
    if (got <= 0)
        return 1;
    if (heartbeat->is_within_frame) {
        report(heartbeat, KC_HEARTBEAT_UNREAD);
        return 0;
    }
    const uint8_t *at = heartbeat->peeked;
    size_t left = (size_t) got;
    while (left >= 4) {
        uint32_t size = load_uint32(at);
        if (size > left - 4)
            break; /* The frame is incomplete or longer than the peeked bytes, or its size is invalid. */
        take_frame(heartbeat, at + 4, size, now_ns);
        at += 4 + size;
        left -= 4 + size;
    }
    if (got >= KC_MUCH_UNREAD)
        report(heartbeat, KC_HEARTBEAT_UNREAD);
    return got < KC_PEEK_SIZE;
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

/* Return the bytes sent, 0 if the socket's buffer is full, or the negative errno. */
static ssize_t send_some(int fd, const uint8_t *from, size_t size) {
    ssize_t sent;
    do
        sent = send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    return sent;
}

static void mark_disconnected(kc_heartbeat *heartbeat) {
    heartbeat->is_disconnected = 1;
    report(heartbeat, KC_HEARTBEAT_DISCONNECTED);
}

/* Finish a partly written heartbeat. Return 1 when done, 0 if the socket's buffer is full, or the negative errno. */
static int write_rest(kc_heartbeat *heartbeat) {
    while (heartbeat->rest_size > 0) {
        ssize_t sent = send_some(heartbeat->fd, heartbeat->rest + heartbeat->rest_at, heartbeat->rest_size);
        if (sent <= 0)
            return (int) sent;
        heartbeat->rest_at += (size_t) sent;
        heartbeat->rest_size -= (size_t) sent;
    }
    return 1;
}

static void write_beat(kc_heartbeat *heartbeat, int64_t now_ns) {
    store_uint32(heartbeat->frame + KC_REQUEST_ID_AT, heartbeat->first_id + (uint32_t) (heartbeat->next_beat % heartbeat->id_count));
    ssize_t sent = send_some(heartbeat->fd, heartbeat->frame, heartbeat->beat.frame_size);
    if (sent < 0) {
        mark_disconnected(heartbeat);
        return;
    }
    heartbeat->next_beat_ns = later(now_ns, heartbeat->beat.interval_ns);
    if (sent == 0)
        return; /* The socket's buffer is full because the broker does not read. Retry at the next interval. */
    heartbeat->next_beat++;
    heartbeat->state.sent_count++;
    heartbeat->state.last_sent_ns = now_ns;
    heartbeat->next_peek_ns = later(now_ns, KC_PEEK_DELAY_NS);
    heartbeat->rest_at = 0;
    heartbeat->rest_size = heartbeat->beat.frame_size - (size_t) sent;
    memcpy(heartbeat->rest, heartbeat->frame + sent, heartbeat->rest_size);
}

int kc_heartbeat_begin_write(kc_heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->mutex);
    return heartbeat->rest_size > 0 ? write_rest(heartbeat) : 1;
}

void kc_heartbeat_end_write(kc_heartbeat *heartbeat, int is_mid_frame) {
    heartbeat->is_mid_frame = is_mid_frame;
    if (!is_mid_frame && heartbeat->wants_end_of_frame) {
        heartbeat->wants_end_of_frame = 0;
        heartbeat->reported &= ~KC_HEARTBEAT_BLOCKED;
        wake(heartbeat);
    }
    pthread_mutex_unlock(&heartbeat->mutex);
}

void kc_heartbeat_begin_read(kc_heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->is_reading = 1;
    pthread_mutex_unlock(&heartbeat->mutex);
}

void kc_heartbeat_end_read(kc_heartbeat *heartbeat, int is_within_frame) {
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->is_reading = 0;
    heartbeat->is_within_frame = is_within_frame;
    heartbeat->reported &= ~KC_HEARTBEAT_UNREAD;
    pthread_mutex_unlock(&heartbeat->mutex);
}

/* ---- The thread ---------------------------------------------------------------------------------------------- */

static int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

/* Report silence if no response arrived within the session timeout, read or unread. */
static void check_silence(kc_heartbeat *heartbeat, int64_t now_ns) {
    if (peek(heartbeat, now_ns) && now_ns >= later(heartbeat->state.last_answer_ns, heartbeat->beat.session_ns)) {
        atomic_store(&heartbeat->is_silent, 1);
        report(heartbeat, KC_HEARTBEAT_SILENT);
    }
}

/* Handle what is due. Return when the next step is due. */
static int64_t handle_due(kc_heartbeat *heartbeat, int64_t now_ns) {
    if (heartbeat->fd < 0 || heartbeat->is_disconnected)
        return KC_NEVER;
    if (heartbeat->rest_size > 0 && !heartbeat->is_mid_frame && write_rest(heartbeat) < 0) {
        mark_disconnected(heartbeat);
        return KC_NEVER;
    }
    if (!heartbeat->is_beating)
        return KC_NEVER;
    int64_t poll_deadline_ns = atomic_load(&heartbeat->poll_deadline_ns);
    if (now_ns >= poll_deadline_ns) {
        report(heartbeat, KC_HEARTBEAT_POLL_OVERDUE);
        /* kc_heartbeat_polled does not wake the thread, because that would cost every poll. Check again later. */
        return later(now_ns, heartbeat->beat.interval_ns);
    }
    heartbeat->reported &= ~KC_HEARTBEAT_POLL_OVERDUE;
    if (now_ns >= heartbeat->next_beat_ns && heartbeat->rest_size == 0) {
        peek(heartbeat, now_ns);
        if (heartbeat->is_mid_frame) {
            /* Only the connection's owner can finish its frame, and it may be busy elsewhere. */
            heartbeat->wants_end_of_frame = 1;
            report(heartbeat, KC_HEARTBEAT_BLOCKED);
        } else if (!heartbeat->is_disconnected) {
            write_beat(heartbeat, now_ns);
        }
    }
    if (now_ns >= heartbeat->next_peek_ns) {
        /* The response has not been read yet, and may contain an error. */
        if (heartbeat->unanswered_beat < heartbeat->next_beat)
            peek(heartbeat, now_ns);
        int is_awaited = heartbeat->unanswered_beat < heartbeat->next_beat;
        heartbeat->next_peek_ns = is_awaited ? later(now_ns, now_ns - heartbeat->state.last_sent_ns) : KC_NEVER;
    }
    int64_t silent_ns = later(heartbeat->state.last_answer_ns, heartbeat->beat.session_ns);
    if (now_ns >= silent_ns && !heartbeat->is_disconnected && !(heartbeat->reported & KC_HEARTBEAT_SILENT)) {
        check_silence(heartbeat, now_ns);
        silent_ns = later(heartbeat->state.last_answer_ns, heartbeat->beat.session_ns);
        if (now_ns >= silent_ns)
            silent_ns = later(now_ns, KC_PEEK_DELAY_NS);
    }
    if (heartbeat->reported & KC_HEARTBEAT_SILENT)
        silent_ns = KC_NEVER;
    if (heartbeat->is_disconnected)
        return KC_NEVER;
    /* A writable socket or the end of the connection's frame wakes the thread. */
    int is_held = heartbeat->rest_size > 0 || heartbeat->wants_end_of_frame;
    int64_t next_ns = smaller(is_held ? KC_NEVER : heartbeat->next_beat_ns, heartbeat->next_peek_ns);
    return smaller(smaller(next_ns, silent_ns), poll_deadline_ns);
}

/* Like poll(2), with a deadline in nanoseconds. */
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

static void *run_thread(void *given) {
    kc_heartbeat *heartbeat = given;
    struct pollfd watched[2];
    pthread_mutex_lock(&heartbeat->mutex);
    while (!heartbeat->is_stopping) {
        int64_t now_ns = clock_ns(heartbeat);
        int64_t until_ns = handle_due(heartbeat, now_ns);
        if (heartbeat->has_manual_clock) {
            heartbeat->handled_ns = now_ns;
            pthread_cond_broadcast(&heartbeat->event_reported);
            if (until_ns > now_ns)
                until_ns = KC_NEVER; /* kc_heartbeat_advance wakes the thread. */
        }
        unsigned attachment = heartbeat->attachment;
        int has_rest = heartbeat->rest_size > 0 && !heartbeat->is_mid_frame;
        int is_watched = !heartbeat->is_disconnected && (heartbeat->is_beating || has_rest);
        watched[0] = (struct pollfd){heartbeat->wake_fds[0], POLLIN, 0};
        watched[1] = (struct pollfd){is_watched ? heartbeat->fd : -1, (short) (POLLRDHUP | (has_rest ? POLLOUT : 0)), 0};
        pthread_mutex_unlock(&heartbeat->mutex);
        int found = watch(watched, 2, until_ns, now_ns);
        pthread_mutex_lock(&heartbeat->mutex);
        if (found <= 0)
            continue;
        if (watched[0].revents)
            kc_wakeup_drain(heartbeat->wake_fds[0]);
        /* If the attachment has changed, the event belongs to a descriptor that may by now be another file's. */
        if (heartbeat->attachment == attachment && (watched[1].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
            mark_disconnected(heartbeat);
    }
    pthread_mutex_unlock(&heartbeat->mutex);
    return NULL;
}

static int start(kc_heartbeat *heartbeat) {
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, KC_STACK_SIZE);
    /* Block all signals, which Python's main thread handles. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&heartbeat->thread, &attributes, run_thread, heartbeat);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
#ifdef __linux__
    if (error == 0)
        pthread_setname_np(heartbeat->thread, "kafka-heartbeat");
#endif
    heartbeat->has_thread = error == 0;
    return -error;
}

/* ---- Interface ----------------------------------------------------------------------------------------------- */

void kc_heartbeat_attach(kc_heartbeat *heartbeat, int fd, int is_mid_frame, int is_within_frame) {
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->fd = fd;
    heartbeat->attachment++;
    heartbeat->is_disconnected = heartbeat->is_reading = heartbeat->wants_end_of_frame = 0;
    heartbeat->is_mid_frame = is_mid_frame;
    heartbeat->is_within_frame = is_within_frame;
    heartbeat->rest_size = 0;
    wake(heartbeat);
    pthread_mutex_unlock(&heartbeat->mutex);
}

int kc_heartbeat_detach(kc_heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->mutex);
    int is_cut = heartbeat->rest_size > 0;
    if (heartbeat->is_beating)
        report(heartbeat, KC_HEARTBEAT_DISCONNECTED);
    heartbeat->is_beating = 0;
    atomic_store(&heartbeat->is_silent, 0);
    heartbeat->fd = -1;
    heartbeat->attachment++;
    heartbeat->rest_size = 0;
    wake(heartbeat);
    pthread_mutex_unlock(&heartbeat->mutex);
    return is_cut;
}

/* Allocate memory for a heartbeat of this size and for its unwritten rest, keeping the contents. */
static int reserve(kc_heartbeat *heartbeat, size_t size) {
    uint8_t *frame, *rest;
    if (size <= heartbeat->rest_capacity)
        return 0;
    if ((frame = realloc(heartbeat->frame, size)) != NULL)
        heartbeat->frame = frame;
    if ((rest = realloc(heartbeat->rest, size)) != NULL)
        heartbeat->rest = rest;
    if (frame == NULL || rest == NULL)
        return -ENOMEM;
    heartbeat->rest_capacity = size;
    return 0;
}

int kc_heartbeat_begin(kc_heartbeat *heartbeat, const kc_beat *beat) {
    if (beat->frame_size < KC_REQUEST_ID_AT + 4)
        return -EINVAL;
    pthread_mutex_lock(&heartbeat->mutex);
    int error = heartbeat->is_stopping ? -ESHUTDOWN : heartbeat->fd < 0 ? -ENOTCONN : reserve(heartbeat, beat->frame_size);
    if (error == 0 && !heartbeat->has_thread)
        error = start(heartbeat);
    if (error == 0) {
        int64_t now_ns = clock_ns(heartbeat);
        memcpy(heartbeat->frame, beat->frame, beat->frame_size);
        heartbeat->beat = *beat;
        heartbeat->beat.frame = heartbeat->frame;
        heartbeat->is_beating = 1;
        heartbeat->begun_beat = heartbeat->unanswered_beat = heartbeat->next_beat;
        heartbeat->state.last_answer_ns = now_ns;
        heartbeat->next_beat_ns = later(now_ns, beat->interval_ns);
        heartbeat->next_peek_ns = KC_NEVER;
        heartbeat->pending &= KC_HEARTBEAT_WOKEN | KC_HEARTBEAT_CLOSED;
        heartbeat->reported = 0;
        atomic_store(&heartbeat->is_silent, 0);
        heartbeat->state.error_code = 0;
        if (heartbeat->is_disconnected)
            report(heartbeat, KC_HEARTBEAT_DISCONNECTED);
        wake(heartbeat);
    } else if (error == -ENOTCONN) {
        heartbeat->reported = 0;
        report(heartbeat, KC_HEARTBEAT_DISCONNECTED);
    }
    pthread_mutex_unlock(&heartbeat->mutex);
    return error;
}

void kc_heartbeat_end(kc_heartbeat *heartbeat) {
    pthread_mutex_lock(&heartbeat->mutex);
    atomic_store(&heartbeat->is_silent, 0);
    heartbeat->is_beating = 0;
    heartbeat->pending &= KC_HEARTBEAT_WOKEN | KC_HEARTBEAT_CLOSED;
    pthread_mutex_unlock(&heartbeat->mutex);
}

void kc_heartbeat_polled(kc_heartbeat *heartbeat, int64_t deadline_ns) { atomic_store(&heartbeat->poll_deadline_ns, deadline_ns); }

int kc_heartbeat_is_silent(kc_heartbeat *heartbeat) { return atomic_load(&heartbeat->is_silent); }

int kc_heartbeat_answered(kc_heartbeat *heartbeat, uint32_t id) {
    pthread_mutex_lock(&heartbeat->mutex);
    uint64_t beat = heartbeat->is_beating ? beat_of(heartbeat, id) : UINT64_MAX;
    int is_ours = beat != UINT64_MAX;
    if (is_ours) {
        take_answer(heartbeat, beat, clock_ns(heartbeat));
        /* The connection has now read an error that a peek reported. */
        heartbeat->reported &= ~KC_HEARTBEAT_ERROR_ANSWER;
    }
    pthread_mutex_unlock(&heartbeat->mutex);
    return is_ours;
}

void kc_heartbeat_report(kc_heartbeat *heartbeat, int event) {
    pthread_mutex_lock(&heartbeat->mutex);
    report(heartbeat, event);
    pthread_mutex_unlock(&heartbeat->mutex);
}

static void wait_until(kc_heartbeat *heartbeat, int64_t until_ns) {
    if (until_ns == KC_NEVER) {
        pthread_cond_wait(&heartbeat->event_reported, &heartbeat->mutex);
        return;
    }
    struct timespec time;
#ifdef __APPLE__
    int64_t left_ns = until_ns - kc_heartbeat_now_ns();
    if (left_ns <= 0)
        return;
    time.tv_sec = left_ns / 1000000000;
    time.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait_relative_np(&heartbeat->event_reported, &heartbeat->mutex, &time);
#else
    time.tv_sec = until_ns / 1000000000;
    time.tv_nsec = until_ns % 1000000000;
    pthread_cond_timedwait(&heartbeat->event_reported, &heartbeat->mutex, &time);
#endif
}

int kc_heartbeat_wait(kc_heartbeat *heartbeat, int64_t until_ns) {
    pthread_mutex_lock(&heartbeat->mutex);
    while (heartbeat->pending == 0 && kc_heartbeat_now_ns() < until_ns)
        wait_until(heartbeat, until_ns);
    int pending = heartbeat->pending;
    heartbeat->pending = pending & KC_HEARTBEAT_CLOSED; /* CLOSED stays pending. */
    pthread_mutex_unlock(&heartbeat->mutex);
    return pending;
}

void kc_heartbeat_advance(kc_heartbeat *heartbeat, int64_t by_ns) {
    pthread_mutex_lock(&heartbeat->mutex);
    heartbeat->manual_ns = later(heartbeat->manual_ns, by_ns);
    wake(heartbeat);
    while (heartbeat->has_thread && !heartbeat->is_stopping && heartbeat->handled_ns < heartbeat->manual_ns)
        pthread_cond_wait(&heartbeat->event_reported, &heartbeat->mutex);
    pthread_mutex_unlock(&heartbeat->mutex);
}

void kc_heartbeat_get_state(kc_heartbeat *heartbeat, kc_heartbeat_state *state) {
    pthread_mutex_lock(&heartbeat->mutex);
    *state = heartbeat->state;
    state->is_beating = heartbeat->is_beating && !heartbeat->is_disconnected;
    state->is_attached = heartbeat->fd >= 0;
    pthread_mutex_unlock(&heartbeat->mutex);
}
