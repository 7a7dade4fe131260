AND (runs.status = 'ready' OR runs.due_us <= {now} OR (runs.status = 'running' AND NOT EXISTS (
        SELECT FROM {schema}.owners WHERE owners.id = runs.owner AND owners.until_us > {now}
      )))
