//! Authenticators.
