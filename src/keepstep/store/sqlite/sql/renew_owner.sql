UPDATE owners SET until_us = ?2 WHERE id = ?1 RETURNING id
