-- A page of a list: the places that the sources find, and the runs that stand there.
SELECT hit.us, hit.id, runs.seq, runs.digest, runs.row, owners.until_us, {now}
FROM (
  SELECT found.us, found.id, found.seq FROM (
{sources}
  ) AS found
  ORDER BY found.us {direction}, found.id {direction} LIMIT %(most)s
) AS hit
JOIN {schema}.runs ON runs.id = hit.id
LEFT JOIN {schema}.owners ON owners.id = runs.owner
ORDER BY hit.us {direction}, hit.id {direction}
