//! Allocation of addresses and ports.
