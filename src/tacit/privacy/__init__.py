"""What a guarantee is: units, budgets, events, accounting, certificates."""
