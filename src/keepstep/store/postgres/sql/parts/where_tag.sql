AND EXISTS (
          SELECT FROM {schema}.tags AS also
          WHERE also.run = runs.id AND also.name = %(name{n})s AND also.value = %(value{n})s
        )
