//! The rules of each kind and the one table of them.
