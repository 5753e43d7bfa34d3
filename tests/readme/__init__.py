"""The README as it is read: what it shows is run, what it lists is what there is."""
