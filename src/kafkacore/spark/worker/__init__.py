"""Support code for Spark's Python workers: tasks, a pool of clients, and prefetching."""
