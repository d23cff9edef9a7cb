"""Messages of all APIs, one module per API. Generated; do not edit."""
