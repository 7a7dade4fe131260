-- Where the same statements come again and again, each is planned once: to plan one takes longer than to carry it out. What
-- they look for has an index, also while the tables are too small for the planner to care.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false)
