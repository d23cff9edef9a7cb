#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include "poller_impl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Linux has no kqueue. KC_KQUEUE can be defined there to test the backend with libkqueue. */
#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__) || defined(__DragonFly__)
#define KC_KQUEUE 1
#endif

#if defined(KC_KQUEUE)
#include <fcntl.h>
#include <sys/event.h>
#include <time.h>
#elif defined(__linux__)
#include <sys/epoll.h>
#endif
#ifdef __linux__
#include <sys/sendfile.h>
#endif

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_MORE
#define MSG_MORE 0
#endif

#define KC_WAIT_BATCH 256

struct kc_poller {
    int queue_fd; /* Of epoll or kqueue; -1 to use poll(2) with `watched`. */
    int fork_generation;
    struct pollfd *watched;
    int count, capacity;
    /* fd -> index in `watched`, or -1. With kqueue: index in the events of the wait that last reported fd. */
    int *place;
    int place_capacity;
    int next; /* Start of the next scan; rotates so that no descriptor is always reported first. */
};

static int reserve_place(kc_poller *poller, int fd) {
    if (fd < poller->place_capacity)
        return 0;
    int capacity = fd + 64;
    int *place = realloc(poller->place, (size_t) capacity * sizeof(int));
    if (place == NULL)
        return -ENOMEM;
    for (int i = poller->place_capacity; i < capacity; i++)
        place[i] = -1;
    poller->place = place;
    poller->place_capacity = capacity;
    return 0;
}

/* ---- poll(2) --------------------------------------------------------------------------------------------- */

static int reserve_watched(kc_poller *poller) {
    if (poller->count < poller->capacity)
        return 0;
    int capacity = 2 * poller->capacity + 16;
    struct pollfd *watched = realloc(poller->watched, (size_t) capacity * sizeof(struct pollfd));
    if (watched == NULL)
        return -ENOMEM;
    poller->watched = watched;
    poller->capacity = capacity;
    return 0;
}

static int poll_set(kc_poller *poller, int fd, int interest) {
    int error = reserve_place(poller, fd);
    if (error == 0)
        error = reserve_watched(poller);
    if (error < 0)
        return error;
    int at = poller->place[fd];
    if (interest == 0) {
        if (at >= 0) {
            poller->watched[at] = poller->watched[--poller->count];
            poller->place[poller->watched[at].fd] = at;
            poller->place[fd] = -1;
        }
        return 0;
    }
    if (at < 0) {
        at = poller->count++;
        poller->place[fd] = at;
        poller->watched[at].fd = fd;
    }
    poller->watched[at].events =
        (short) ((interest & KC_READ ? POLLIN : 0) | (interest & KC_WRITE ? POLLOUT : 0));
    return 0;
}

static int poll_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) {
    int found = 0;
    if (poll(poller->watched, (nfds_t) poller->count, timeout_ms) < 0)
        return -errno;
    for (int i = 0; i < poller->count && found < capacity; i++) {
        if (poller->next >= poller->count)
            poller->next = 0;
        struct pollfd *one = &poller->watched[poller->next++];
        if (one->revents == 0)
            continue;
        events[found].fd = one->fd;
        events[found++].ready = (one->revents & POLLIN ? KC_READ : 0) | (one->revents & POLLOUT ? KC_WRITE : 0) |
                                (one->revents & (POLLERR | POLLHUP | POLLNVAL) ? KC_BROKEN : 0);
    }
    return found;
}

/* ---- epoll ----------------------------------------------------------------------------------------------- */

#if defined(__linux__) && !defined(KC_KQUEUE)

static const char *const queue_name = "epoll";

static int queue_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

static void queue_close(const kc_poller *poller) { close(poller->queue_fd); }

static int queue_set(kc_poller *poller, int fd, int old_interest, int interest) {
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    event.events = (interest & KC_READ ? EPOLLIN : 0) | (interest & KC_WRITE ? EPOLLOUT : 0);
    event.data.fd = fd;
    /* A descriptor without watched events is removed: epoll always reports EPOLLHUP, so that a muted channel with a
       dead peer would turn the wait into a busy loop. */
    int operation = interest == 0 ? EPOLL_CTL_DEL : old_interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return epoll_ctl(poller->queue_fd, operation, fd, &event) < 0 ? -errno : 0;
}

static int queue_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) {
    struct epoll_event raw[KC_WAIT_BATCH];
    int found = epoll_wait(poller->queue_fd, raw, capacity < KC_WAIT_BATCH ? capacity : KC_WAIT_BATCH, timeout_ms);
    if (found < 0)
        return -errno;
    for (int i = 0; i < found; i++) {
        events[i].fd = raw[i].data.fd;
        events[i].ready = (raw[i].events & EPOLLIN ? KC_READ : 0) | (raw[i].events & EPOLLOUT ? KC_WRITE : 0) |
                          (raw[i].events & (EPOLLERR | EPOLLHUP) ? KC_BROKEN : 0);
    }
    return found;
}

/* ---- kqueue ---------------------------------------------------------------------------------------------- */

#elif defined(KC_KQUEUE)

static const char *const queue_name = "kqueue";

static int queue_open(void) {
    int fd = kqueue();
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* A forked child does not inherit a kqueue, so the number may be that of another file. */
static void queue_close(const kc_poller *poller) {
    if (poller->fork_generation == kc_fork_generation())
        close(poller->queue_fd);
}

static int set_filter(const kc_poller *poller, int fd, int filter, int is_wanted) {
    struct kevent change;
    EV_SET(&change, fd, filter, is_wanted ? EV_ADD : EV_DELETE, 0, 0, 0);
    /* After EINTR, the change has been made. */
    if (kevent(poller->queue_fd, &change, 1, NULL, 0, NULL) == 0 || errno == EINTR)
        return 0;
    /* ENOENT: the descriptor has been closed, which removes its filters, and its number is in use again. */
    return !is_wanted && errno == ENOENT ? 0 : -errno;
}

/* A descriptor has two filters. On failure, neither is changed, as with epoll. */
static int queue_set(kc_poller *poller, int fd, int old_interest, int interest) {
    int changed = old_interest ^ interest;
    int error = reserve_place(poller, fd);
    if (error == 0 && changed & KC_READ)
        error = set_filter(poller, fd, EVFILT_READ, interest & KC_READ);
    if (error < 0 || !(changed & KC_WRITE))
        return error;
    error = set_filter(poller, fd, EVFILT_WRITE, interest & KC_WRITE);
    if (error < 0 && changed & KC_READ)
        set_filter(poller, fd, EVFILT_READ, old_interest & KC_READ);
    return error;
}

static int ready_of(const struct kevent *event) {
    int is_write = event->filter == EVFILT_WRITE;
    /* EV_EOF of the read filter without an error: the peer has closed its direction only, and may still read. epoll
       reports EPOLLIN then. */
    int is_broken = event->flags & EV_ERROR || (event->flags & EV_EOF && (is_write || event->fflags != 0));
    return (is_write ? KC_WRITE : KC_READ) | (is_broken ? KC_BROKEN : 0);
}

static int queue_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) {
    struct kevent raw[KC_WAIT_BATCH];
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    int count = kevent(poller->queue_fd, NULL, 0, raw, capacity < KC_WAIT_BATCH ? capacity : KC_WAIT_BATCH,
                       timeout_ms < 0 ? NULL : &timeout);
    int found = 0;
    if (count < 0)
        return -errno;
    for (int i = 0; i < count; i++) {
        int fd = (int) raw[i].ident;
        int at = poller->place[fd];
        /* The other filter of the descriptor may have been reported before. `place` also has entries of earlier
           waits, so check that the event is this descriptor's. */
        if (at < 0 || at >= found || events[at].fd != fd) {
            at = poller->place[fd] = found++;
            events[at].fd = fd;
            events[at].ready = 0;
        }
        events[at].ready |= ready_of(&raw[i]);
    }
    return found;
}

/* ---- Neither --------------------------------------------------------------------------------------------- */

#else

static const char *const queue_name = NULL;

static int queue_open(void) {
    errno = ENOSYS;
    return -1;
}

static void queue_close(const kc_poller *poller) {}

static int queue_set(kc_poller *poller, int fd, int old_interest, int interest) { return -ENOSYS; }

static int queue_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) { return -ENOSYS; }

#endif

/* ---- All backends ---------------------------------------------------------------------------------------- */

const char *kc_queue_name(void) { return queue_name; }

kc_poller *kc_poller_new(int uses_queue) {
    kc_poller *poller = calloc(1, sizeof(*poller));
    if (poller == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    poller->fork_generation = kc_fork_generation();
    poller->queue_fd = uses_queue ? queue_open() : -1;
    if (uses_queue && poller->queue_fd < 0) {
        free(poller);
        return NULL;
    }
    return poller;
}

void kc_poller_free(kc_poller *poller) {
    if (poller == NULL)
        return;
    if (poller->queue_fd >= 0)
        queue_close(poller);
    free(poller->watched);
    free(poller->place);
    free(poller);
}

int kc_poller_fd(const kc_poller *poller) { return poller->queue_fd; }

int kc_poller_set(kc_poller *poller, int fd, int old_interest, int interest) {
    if (old_interest == interest)
        return 0;
    return poller->queue_fd < 0 ? poll_set(poller, fd, interest) : queue_set(poller, fd, old_interest, interest);
}

int kc_poller_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) {
    return poller->queue_fd < 0 ? poll_wait(poller, timeout_ms, events, capacity)
                                : queue_wait(poller, timeout_ms, events, capacity);
}

/* ---- Forks ----------------------------------------------------------------------------------------------- */

static atomic_int fork_generation;

static void count_fork(void) { atomic_fetch_add(&fork_generation, 1); }

int kc_watch_forks(void) { return -pthread_atfork(NULL, NULL, count_fork); }

int kc_fork_generation(void) { return atomic_load(&fork_generation); }

/* ---- Sockets --------------------------------------------------------------------------------------------- */

void kc_disable_sigpipe(int fd) {
#ifdef SO_NOSIGPIPE
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#else
    (void) fd;
#endif
}

/* Map EWOULDBLOCK to EAGAIN on systems where they differ. */
static ssize_t failed(void) {
    return errno == EWOULDBLOCK ? -(ssize_t) EAGAIN : -(ssize_t) errno;
}

ssize_t kc_recv(int fd, void *to, size_t size) {
    ssize_t got;
    do
        got = recv(fd, to, size, 0);
    while (got < 0 && errno == EINTR);
    return got < 0 ? failed() : got;
}

ssize_t kc_send_vector(int fd, const struct iovec *vector, int count, int more) {
    struct msghdr message;
    ssize_t sent;
    int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    if (count == 1) { /* send() saves the kernel two copies from user space. */
        do
            sent = send(fd, vector->iov_base, vector->iov_len, flags);
        while (sent < 0 && errno == EINTR);
        return sent < 0 ? failed() : sent;
    }
    memset(&message, 0, sizeof(message));
    message.msg_iov = (struct iovec *) vector;
    message.msg_iovlen = count;
    do /* Unlike writev(2), does not raise SIGPIPE. */
        sent = sendmsg(fd, &message, flags);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? failed() : sent;
}

#ifdef __linux__
ssize_t kc_send_file(int fd, int file, off_t position, size_t size) {
    ssize_t sent;
    do
        sent = sendfile(fd, file, &position, size);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? failed() : sent == 0 ? -ENODATA : sent;
}
#else
ssize_t kc_send_file(int fd, int file, off_t position, size_t size) {
    char buffer[1 << 16];
    struct iovec read_bytes = {buffer, 0};
    ssize_t got;
    do
        got = pread(file, buffer, size < sizeof(buffer) ? size : sizeof(buffer), position);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 ? failed() : -ENODATA;
    read_bytes.iov_len = got;
    return kc_send_vector(fd, &read_bytes, 1, 0);
}
#endif

int kc_has_unread(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

int kc_socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}
