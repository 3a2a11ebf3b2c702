"""The promises, one file each."""
