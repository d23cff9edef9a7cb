/* A descriptor that another thread makes readable. The waiting thread watches fds[0] and the other writes fds[1]; they
   are one eventfd, or the two ends of a pipe. Functions return 0 or the negative errno. */
#ifndef KAFKACORE_WAKEUP_H
#define KAFKACORE_WAKEUP_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/eventfd.h>
#endif

static inline int kc_wakeup_open(int fds[2]) {
#ifdef __linux__
    fds[0] = fds[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fds[0] < 0 ? -errno : 0;
#else
    if (pipe(fds) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
    return 0;
#endif
}

static inline void kc_wakeup_close(int fds[2]) {
    if (fds[0] >= 0)
        close(fds[0]);
    if (fds[1] >= 0 && fds[1] != fds[0])
        close(fds[1]);
    fds[0] = fds[1] = -1;
}

static inline int kc_wakeup_signal(int fd) {
    uint64_t one = 1;
    /* EAGAIN: enough signals are pending to wake the reader. */
    return write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

static inline void kc_wakeup_drain(int fd) {
    char pending[64];
    while (read(fd, pending, sizeof(pending)) == (ssize_t) sizeof(pending)) {
    }
}

#endif
