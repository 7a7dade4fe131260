-- In a copy of the store: nobody holds a run there.
DELETE FROM owners
