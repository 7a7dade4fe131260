-- Runs with one tag, in order.
SELECT tags.{column}, tags.id, tags.run
FROM tags INDEXED BY tags_by_value_{order} CROSS JOIN runs ON runs.key = tags.run
WHERE tags.name = :driver_name AND tags.value = :driver
  AND (tags.{column}, tags.id) {past} (:us, :id)
  {filters}
ORDER BY tags.{column} {direction}, tags.id {direction}
