UPDATE {schema}.owners SET until_us = {now} + %(lease_us)s WHERE id = %(owner)s RETURNING {now}
