//! Well-known names and the values of string types.
