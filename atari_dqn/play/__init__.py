"""Games played live in a terminal, by an agent, by a person, or by both next to each other."""
