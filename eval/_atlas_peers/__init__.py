"""Other memories behind the acceptance tests. Each module runs in its product's own environment, without Muniment."""
