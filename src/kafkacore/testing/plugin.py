"""pytest plugin: fixtures that give a test a broker."""
