#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include "poller_impl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/epoll.h>
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
    int epoll_fd; /* -1 to use poll(2) with the tables below. */
    struct pollfd *watched;
    int count, capacity;
    int *place; /* fd -> index in `watched`, or -1. */
    int place_capacity;
    int next; /* Start of the next scan; rotates so that no descriptor is always reported first. */
};

int kc_has_epoll(void) {
#ifdef __linux__
    return 1;
#else
    return 0;
#endif
}

kc_poller *kc_poller_new(int use_epoll) {
    kc_poller *poller = calloc(1, sizeof(*poller));
    if (poller == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    poller->epoll_fd = -1;
#ifdef __linux__
    if (use_epoll) {
        poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (poller->epoll_fd < 0) {
            free(poller);
            return NULL;
        }
    }
#else
    (void) use_epoll;
#endif
    return poller;
}

void kc_poller_free(kc_poller *poller) {
    if (poller == NULL)
        return;
    if (poller->epoll_fd >= 0)
        close(poller->epoll_fd);
    free(poller->watched);
    free(poller->place);
    free(poller);
}

int kc_poller_fd(const kc_poller *poller) { return poller->epoll_fd; }

/* ---- poll(2) --------------------------------------------------------------------------------------------- */

static int reserve(kc_poller *poller, int fd) {
    if (fd >= poller->place_capacity) {
        int capacity = fd + 64;
        int *place = realloc(poller->place, (size_t) capacity * sizeof(int));
        if (place == NULL)
            return -ENOMEM;
        for (int i = poller->place_capacity; i < capacity; i++)
            place[i] = -1;
        poller->place = place;
        poller->place_capacity = capacity;
    }
    if (poller->count == poller->capacity) {
        int capacity = 2 * poller->capacity + 16;
        struct pollfd *watched = realloc(poller->watched, (size_t) capacity * sizeof(struct pollfd));
        if (watched == NULL)
            return -ENOMEM;
        poller->watched = watched;
        poller->capacity = capacity;
    }
    return 0;
}

static int poll_set(kc_poller *poller, int fd, int interest) {
    int error = reserve(poller, fd);
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

/* ---- Both backends --------------------------------------------------------------------------------------- */

int kc_poller_set(kc_poller *poller, int fd, int old_interest, int interest) {
    if (old_interest == interest)
        return 0;
    if (poller->epoll_fd < 0)
        return poll_set(poller, fd, interest);
#ifdef __linux__
    struct epoll_event event;
    memset(&event, 0, sizeof(event));
    event.events = (interest & KC_READ ? EPOLLIN : 0) | (interest & KC_WRITE ? EPOLLOUT : 0);
    event.data.fd = fd;
    /* A descriptor without watched events is removed: epoll always reports EPOLLHUP, so that a muted channel with a
       dead peer would turn the wait into a busy loop. */
    int operation = interest == 0 ? EPOLL_CTL_DEL : old_interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(poller->epoll_fd, operation, fd, &event) < 0)
        return -errno;
#endif
    return 0;
}

int kc_poller_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity) {
    if (poller->epoll_fd < 0)
        return poll_wait(poller, timeout_ms, events, capacity);
#ifdef __linux__
    struct epoll_event raw[KC_WAIT_BATCH];
    int found = epoll_wait(poller->epoll_fd, raw, capacity < KC_WAIT_BATCH ? capacity : KC_WAIT_BATCH, timeout_ms);
    if (found < 0)
        return -errno;
    for (int i = 0; i < found; i++) {
        events[i].fd = raw[i].data.fd;
        events[i].ready = (raw[i].events & EPOLLIN ? KC_READ : 0) | (raw[i].events & EPOLLOUT ? KC_WRITE : 0) |
                          (raw[i].events & (EPOLLERR | EPOLLHUP) ? KC_BROKEN : 0);
    }
    return found;
#else
    return -ENOSYS;
#endif
}

/* ---- Forks ----------------------------------------------------------------------------------------------- */

static volatile int fork_generation;

static void count_fork(void) { fork_generation++; }

int kc_watch_forks(void) { return -pthread_atfork(NULL, NULL, count_fork); }

int kc_fork_generation(void) { return fork_generation; }

/* ---- Sockets --------------------------------------------------------------------------------------------- */

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
