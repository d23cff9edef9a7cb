#ifndef KAFKACORE_WIRE_GIL_IMPL_H
#define KAFKACORE_WIRE_GIL_IMPL_H

/* Announce that a thread is waiting for the GIL, and yield to it; see _gil_handoff.pyx. Lock-free; any thread
 * may call these functions. */

int kc_gil_handoff_watch_forks(void);
void kc_gil_handoff_request(void);
void kc_gil_handoff_received(void);
int kc_gil_handoff_is_requested(void);
/* Whether a thread is waiting that many calls of this function have found waiting. */
int kc_gil_handoff_is_due(void);
/* Wait until a waiting thread has had the GIL, or for 0.2 ms at most. Call this without the GIL. */
void kc_gil_handoff_wait(void);

#endif
