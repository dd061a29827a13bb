"""The filter service's control plane: HTTP, registry, statistics, tokens.

It needs the extra ``fullbloom[server]``. The data plane (the store of filters, its log, the RESP port) is
native, in ``fullbloom_server``. One process holds both; filters never leave the native half as objects, only
keys, answers and the bytes of files cross over.

* ``settings``: one typed object from flags, environment and a TOML file;
* ``engine``: the native half, opened on a folder that nobody else has open;
* ``registry``: filters, statistics, tokens and nodes in SQL;
* ``auth``: tokens, scopes, patterns of names;
* ``http``: the HTTP port;
* ``clock``: what happens every second and every sample;
* ``running``: all of it, started and stopped.
"""
