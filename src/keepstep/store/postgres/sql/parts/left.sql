-- Runs of owners whose lease has passed; the owners that hold runs are found one after another along their index.
    SELECT one.us, one.id, one.seq FROM (
      WITH RECURSIVE holding (owner) AS (
        (SELECT owner FROM {schema}.runs WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (
          SELECT next.owner FROM {schema}.runs AS next WHERE next.owner > holding.owner ORDER BY next.owner LIMIT 1
        )
        FROM holding WHERE holding.owner IS NOT NULL
      )
      SELECT owner FROM holding WHERE owner IS NOT NULL AND NOT EXISTS (
        SELECT FROM {schema}.owners WHERE owners.id = holding.owner AND owners.until_us > {now}
      )
    ) AS gone, LATERAL (
      SELECT runs.{column} AS us, runs.id, runs.seq FROM {schema}.runs
      WHERE runs.owner = gone.owner AND runs.status = 'running'
        AND (runs.{column}, runs.id) {past} (%(us)s, %(id)s)
        {filters}
      ORDER BY runs.{column} {direction}, runs.id {direction} LIMIT %(most)s
    ) AS one
