AND (:workflow IS NULL OR runs.workflow = :workflow)
  AND (:statuses IS NULL OR instr(:statuses, ' ' || runs.status || ' '))
  AND (:parent IS NULL OR runs.parent = :parent)
  AND (:due_us IS NULL OR runs.due_us <= :due_us)
  AND (:living IS NULL OR NOT instr(:living, ' ' || hex(runs.owner) || ' '))
  AND runs.id >= :from_id AND runs.id < :below_id
