#ifndef KAFKACORE_WIRE_GIL_IMPL_H
#define KAFKACORE_WIRE_GIL_IMPL_H

/* Who waits for the interpreter's lock, and who makes way; see gil.pyx. Any thread, no lock of their own. */

int kc_gil_handoff_watch_forks(void);
void kc_gil_handoff_request(void);
void kc_gil_handoff_received(void);
int kc_gil_handoff_is_requested(void);
/* Called without the lock: returns when one of those who waited has had it, or after a while. */
void kc_gil_handoff_wait(void);

#endif
