"""Group membership of a consumer: joining, heartbeats, and committed offsets."""
