"""How a call is awaited: inline in the calling thread, or on an event loop; with the clock, ids and threads for it."""
