"""One file per API: a decoded request and the broker's services in, a response message out.

Each file is headed by the versions it speaks and by what it leaves out. None knows sockets or encoding.
"""
