CREATE INDEX runs_by_asking ON {schema}.runs (asking_us, id) WHERE asking_us IS NOT NULL
