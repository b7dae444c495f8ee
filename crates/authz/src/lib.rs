//! Authorizers.
