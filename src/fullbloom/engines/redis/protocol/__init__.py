"""What is asked of the servers, as generators of requests: nothing here sends."""
