//! Brings clusters up and down.
