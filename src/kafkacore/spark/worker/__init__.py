"""What a Spark Python worker needs to read or to write: tasks, clients kept between tasks, read-ahead."""
