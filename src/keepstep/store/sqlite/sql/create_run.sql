INSERT INTO runs (seq, digest, row, id, status, changed_us, due_us, asking_us, owner, workflow, created_us, parent)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
RETURNING key
