-- Waiting runs whose time has come.
    SELECT one.us, one.id, one.seq FROM unnest(%(waiting)s::text[]) AS want (status), LATERAL (
      SELECT runs.{column} AS us, runs.id, runs.seq FROM {schema}.runs
      WHERE runs.status = want.status AND runs.due_us <= {now} AND (runs.{column}, runs.id) {past} (%(us)s, %(id)s)
        {filters}
      ORDER BY runs.{column} {direction}, runs.id {direction} LIMIT %(most)s
    ) AS one
