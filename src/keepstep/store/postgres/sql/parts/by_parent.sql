-- Forks of one run.
    SELECT one.us, one.id, one.seq FROM (
      SELECT runs.{column} AS us, runs.id, runs.seq FROM {schema}.runs
      WHERE runs.parent = %(parent)s AND (runs.{column}, runs.id) {past} (%(us)s, %(id)s)
        {filters}
      ORDER BY runs.{column} {direction}, runs.id {direction} LIMIT %(most)s
    ) AS one
