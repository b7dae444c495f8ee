//! Informers under faults.
