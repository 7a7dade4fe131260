INSERT INTO tombstones (id, incarnation, epoch) VALUES (?1, ?2, ?3)
