SELECT last_value, is_called FROM {schema}.pulse
