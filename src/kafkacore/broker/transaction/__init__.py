"""The transaction coordinator: transactional producers, and the ends of their transactions."""
