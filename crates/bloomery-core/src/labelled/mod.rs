//! Filters that answer with more than yes or no.
