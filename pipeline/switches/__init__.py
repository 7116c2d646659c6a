"""What is stopped or can't run here: kill switches, availability, host slots."""
