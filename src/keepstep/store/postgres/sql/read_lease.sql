SELECT until_us FROM {schema}.owners WHERE id = %(owner)s
