"""The HTTP port.

* ``server``: connections, their deadlines and limits;
* ``gateway``: every request passes here: it gets an id, is authorized, measured and responded to;
* ``request``, ``asgi``: one request, its head parsed once; responses;
* ``authorization``: which requests are answered;
* ``bulk``: requests about keys: ``bodies`` and ``keys`` in, ``results`` out, each in several formats;
* ``conditions``, ``idempotency``: If-Match and entity tags; requests that are sent twice, whose responses
  ``response_store`` holds;
* ``forwarding``: all other requests, on their way to FastAPI: ``api``, ``schemas``;
* ``page``: the description for people; ``pages``: the dashboard and the explorer, where they are built.
"""
