SELECT key, head, body FROM records WHERE key = ?1
