-- They are compressed already.
ALTER TABLE {schema}.records ALTER COLUMN body SET STORAGE EXTERNAL
