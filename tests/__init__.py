"""A package: spawned processes find these modules before those of a package that has such a folder."""
