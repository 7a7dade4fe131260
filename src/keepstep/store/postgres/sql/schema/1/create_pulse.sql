-- Every transaction that writes a run draws a number, so that whoever waits for a change sees that there was one.
CREATE SEQUENCE {schema}.pulse
