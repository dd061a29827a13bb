"""How filters are stored on a server: in strings, counters, a window's strings, or as the server's own."""
