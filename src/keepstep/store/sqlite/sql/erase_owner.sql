DELETE FROM owners WHERE id = ?1
