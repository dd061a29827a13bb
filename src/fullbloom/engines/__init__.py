"""Filters on database servers and in data frames: one file or package and one extra per engine."""
