"""How fast keepstep is, beside its peers and beside what the disk itself can do: `make bench`."""
