CREATE INDEX runs_by_asking ON runs (asking_us, id) WHERE asking_us IS NOT NULL
