"""The sticky assignors, their two assignment algorithms, and the data on previous owners and racks."""
