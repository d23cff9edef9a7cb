#include "gil_handoff_impl.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* Maximum wait. The waiting thread may have no processor to run on; then the interpreter's slower switch
 * interval has to do. */
#define KC_LONGEST_WAIT_NS 200000

/* Number of checks after which a thread is in a loop that calls them. */
#define KC_PASSED_CALLS 32

static atomic_int waiting;
static atomic_uint taken;
/* `taken` at the last check that found a waiting thread. */
static atomic_uint seen = UINT_MAX;
/* Number of checks since then that found the same thread waiting. */
static atomic_uint passed;

/* The waiting threads do not exist in the child process. */
static void forget_waiting(void) { atomic_store(&waiting, 0); }

int kc_gil_handoff_watch_forks(void) { return -pthread_atfork(NULL, NULL, forget_waiting); }

void kc_gil_handoff_request(void) { atomic_fetch_add(&waiting, 1); }

void kc_gil_handoff_received(void) {
    atomic_fetch_sub(&waiting, 1);
    atomic_fetch_add(&taken, 1);
}

int kc_gil_handoff_is_requested(void) { return atomic_load_explicit(&waiting, memory_order_relaxed) > 0; }

int kc_gil_handoff_is_due(void) {
    unsigned now;
    if (!kc_gil_handoff_is_requested())
        return 0;
    now = atomic_load_explicit(&taken, memory_order_relaxed);
    if (atomic_exchange_explicit(&seen, now, memory_order_relaxed) != now)
        atomic_store_explicit(&passed, 0, memory_order_relaxed);
    return atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed) >= KC_PASSED_CALLS;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

void kc_gil_handoff_wait(void) {
    unsigned before = atomic_load(&taken);
    int64_t end_ns = now_ns() + KC_LONGEST_WAIT_NS;
    while (atomic_load(&waiting) > 0 && atomic_load(&taken) == before && now_ns() < end_ns)
        sched_yield();
}
