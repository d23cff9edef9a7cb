"""Code that the handlers of several APIs share: the request, authorization, and work on another thread."""
