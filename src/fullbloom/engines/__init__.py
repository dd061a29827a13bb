"""Filters on database servers: one package and one extra per engine."""
