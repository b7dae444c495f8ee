//! Whole-system tests, and what several suites of them share: `kubectl`, and tables of what its users do.

pub mod desk;
pub mod kubectl;
pub mod table;
