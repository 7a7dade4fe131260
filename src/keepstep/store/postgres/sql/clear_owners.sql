-- Those whose lease has passed and who hold no run.
DELETE FROM {schema}.owners WHERE id IN (
  SELECT gone.id FROM {schema}.owners AS gone
  WHERE gone.until_us <= {now} AND NOT EXISTS (SELECT FROM {schema}.runs WHERE runs.owner = gone.id)
  FOR UPDATE SKIP LOCKED
)
