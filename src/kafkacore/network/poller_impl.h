/* Readiness of file descriptors: epoll where there is one, poll(2) everywhere. Knows no channel and no Python.
   Every function gives 0 or a count, or the negative errno. Not thread-safe but for kc_wakeup_signal. */
#ifndef KAFKACORE_POLLER_IMPL_H
#define KAFKACORE_POLLER_IMPL_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wakeup.h"

enum { KC_READ = 1, KC_WRITE = 2, KC_BROKEN = 4 };

typedef struct { int fd; int ready; } kc_event;
typedef struct kc_poller kc_poller;

int kc_has_epoll(void);
/* NULL with errno set when there is no memory or no descriptor left. */
kc_poller *kc_poller_new(int use_epoll);
void kc_poller_free(kc_poller *poller);
/* From `old_interest` to `interest`, both of KC_READ | KC_WRITE; 0 is "not watched at all". */
int kc_poller_set(kc_poller *poller, int fd, int old_interest, int interest);
/* A negative time-out waits for ever. */
int kc_poller_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity);

/* Once per process: count in each child how many forks lie between it and this process. Cheaper to ask for than the
   process id, which is a system call. */
int kc_watch_forks(void);
int kc_fork_generation(void);

/* Of a non-blocking socket. 0 from kc_recv is the end of the stream. */
ssize_t kc_recv(int fd, void *to, size_t size);
/* `more`: another write follows at once, wait with a packet that is not full. */
ssize_t kc_send_vector(int fd, const struct iovec *vector, int count, int more);
/* Bytes of a file from `position` on, as they lie there. Fails with ENODATA if the file ends before. */
ssize_t kc_send_file(int fd, int file, off_t position, size_t size);
/* 1 if a byte could be read now, 0 if not or if the stream has ended. */
int kc_has_unread(int fd);
/* The pending error of the socket as a positive errno, 0 if there is none. */
int kc_socket_error(int fd);

#endif
