"""The filter service's control plane: HTTP, registry, statistics, tokens.

It needs the extra ``fullbloom[server]``. The data plane (the store of filters, its log, the RESP port) is
native, in ``fullbloom_server``. One process holds both; filters never leave the native module as objects:
only keys, results and the bytes of files cross over.

* ``settings``: one typed object from flags, environment and a TOML file;
* ``engine``: the native module, opened on a folder that no other process has open (``data_folder``);
* ``registry``: filters, statistics, tokens and nodes in SQL;
* ``node``, ``peers``: one process of the service, and the others on its registry;
* ``redis``: filters whose cells a Redis server holds;
* ``auth``: tokens, scopes, patterns of names;
* ``http``: the HTTP port;
* ``clock``: periodic tasks;
* ``running``: starts and stops all of it.
"""
