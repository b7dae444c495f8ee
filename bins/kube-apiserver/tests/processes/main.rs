//! The server as a process, as operators and clients have it.

mod aggregation;
mod secrets;
mod stage;
