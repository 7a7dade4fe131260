-- Runs with one tag.
    SELECT one.us, one.id, one.seq FROM (
      SELECT tags.{column} AS us, runs.id, runs.seq FROM {schema}.tags JOIN {schema}.runs ON runs.id = tags.run
      WHERE tags.name = %(name0)s AND tags.value = %(value0)s
        AND (tags.{column}, tags.run) {past} (%(us)s, %(id)s)
        {filters}
      ORDER BY tags.{column} {direction}, tags.run {direction} LIMIT %(most)s
    ) AS one
