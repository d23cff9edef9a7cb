/* The allocator of all compiled modules, for C files; see memory.pxd. No function here needs the GIL. */
#ifndef KAFKACORE_MEMORY_H
#define KAFKACORE_MEMORY_H

#include <Python.h>

#define kc_malloc PyMem_RawMalloc
#define kc_calloc PyMem_RawCalloc
#define kc_realloc PyMem_RawRealloc
#define kc_free PyMem_RawFree

#endif
