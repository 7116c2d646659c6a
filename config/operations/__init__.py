"""Does what operators run and watch: backup and restore, doctor, health, metrics, retention."""
