"""The log in which the coordinators of groups and of transactions store their state."""
