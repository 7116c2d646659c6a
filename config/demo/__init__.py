"""Creates sample data in a development instance: four weeks of an invented town's newsroom."""
