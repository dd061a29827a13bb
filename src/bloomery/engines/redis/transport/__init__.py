"""What sends the requests, over the clients of redis-py: blocking and asyncio, one server and a cluster."""
