"""The broker as a process: its command line, startup, shutdown and signals."""
