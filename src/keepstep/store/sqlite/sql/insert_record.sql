INSERT INTO records (key, head, body) VALUES (?1, ?2, ?3)
