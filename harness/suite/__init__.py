"""What to run: the suite's files, their schema, and the plan that is made of them."""
