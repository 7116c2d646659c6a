"""Sample data of a development instance: four weeks of an invented town's newsroom."""
