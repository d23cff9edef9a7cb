"""The parts of the sticky assignors: previous owners, racks, and the two assignment algorithms."""
