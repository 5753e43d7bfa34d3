"""What serving and running cost, beside other servers and another loop: `make bench`."""
