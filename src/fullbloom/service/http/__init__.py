"""The HTTP port.

* ``server``: connections, their deadlines and caps;
* ``gateway``: every request passes here: its number, who sent it, what it may do; bulk requests end here;
* ``bodies``, ``answers``: keys in, answers out, each in several forms;
* ``repeats``: requests that are sent twice;
* ``api``, ``shapes``: the JSON surface and its description;
* ``page``: the description for people.
"""
