"""Operations as generators of requests, which a transport sends; nothing here does I/O."""
