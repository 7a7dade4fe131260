AND EXISTS (SELECT 1 FROM tags AS also WHERE also.run = runs.key AND also.name = :name{n} AND also.value = :value{n})
