"""What handlers of several APIs share: the request, its error answers, authorization, work on another thread.

Does not know: any single API, sockets.
"""
