"""The sample data of a development instance: four weeks of an invented town's newsroom, made as users make theirs."""
