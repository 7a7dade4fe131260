-- Due runs, oldest change first, passing over those that others have locked. What has changed
-- between being found and being locked is passed over, too.
SELECT hit.us, hit.id, runs.seq, runs.digest, runs.row, owners.until_us, {now}
FROM (
  SELECT found.us, found.id, found.seq FROM (
{sources}
  ) AS found
  ORDER BY found.us, found.id LIMIT %(most)s
) AS hit
JOIN {schema}.runs ON runs.id = hit.id AND runs.seq = hit.seq
LEFT JOIN {schema}.owners ON owners.id = runs.owner
ORDER BY hit.us, hit.id LIMIT %(limit)s
FOR UPDATE OF runs SKIP LOCKED
