/* Readiness of file descriptors, by epoll on Linux, by kqueue on macOS and BSD, or by poll(2). Functions return 0 or a
   count, or the negative errno. Only kc_wakeup_signal is thread-safe. */
#ifndef KAFKACORE_POLLER_IMPL_H
#define KAFKACORE_POLLER_IMPL_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "wakeup.h"

enum { KC_READ = 1, KC_WRITE = 2, KC_BROKEN = 4 };

typedef struct { int fd; int ready; } kc_event;
typedef struct kc_poller kc_poller;

/* Returns the name of the system's queue of ready descriptors, "epoll" or "kqueue"; NULL if it has only poll(2). */
const char *kc_queue_name(void);
/* Returns NULL and sets errno if there is no memory or no descriptor left. */
kc_poller *kc_poller_new(int uses_queue);
void kc_poller_free(kc_poller *poller);
/* Returns the descriptor of epoll or kqueue, or -1 with poll(2). */
int kc_poller_fd(const kc_poller *poller);
/* Change the watched events, each a combination of KC_READ and KC_WRITE; 0 if `fd` is not watched. */
int kc_poller_set(kc_poller *poller, int fd, int old_interest, int interest);
/* A negative timeout_ms means no time-out. */
int kc_poller_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity);

/* Call once per process. kc_fork_generation then returns the number of forks between this process and the caller,
   without the system call that getpid costs. */
int kc_watch_forks(void);
int kc_fork_generation(void);

/* Make writes to a disconnected socket fail instead of raising SIGPIPE. On Linux, each write asks for that. */
void kc_disable_sigpipe(int fd);
/* The sockets are non-blocking. kc_recv returns 0 at the end of the stream. */
ssize_t kc_recv(int fd, void *to, size_t size);
/* `more`: another write follows immediately, so the kernel may hold back a partial packet. */
ssize_t kc_send_vector(int fd, const struct iovec *vector, int count, int more);
/* Send bytes of a file from `position`. Fails with ENODATA if the file ends at or before `position`. */
ssize_t kc_send_file(int fd, int file, off_t position, size_t size);
/* Returns 1 if a byte can be read now, and 0 if not or at the end of the stream. */
int kc_has_unread(int fd);
/* Returns the pending error of the socket as a positive errno, or 0. */
int kc_socket_error(int fd);

#endif
