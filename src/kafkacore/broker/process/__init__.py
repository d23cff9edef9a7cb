"""The broker as a process: its command line, start, stop and signals.

Does not know: requests.
"""
