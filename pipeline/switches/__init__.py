"""Says what is stopped or can't run here: kill switches, availability, host slots."""
