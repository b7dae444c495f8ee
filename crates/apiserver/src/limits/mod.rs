//! How much the server does at a time. Nothing here knows the server: what is counted and who waits is told by values.

mod concurrency;
mod in_flight;
mod running;
mod seats;
mod watches;

pub(crate) use concurrency::{Concurrency, Present};
pub(crate) use in_flight::InFlight;
pub(crate) use running::{Running, Runs};
pub(crate) use seats::{Admitted, Classified, Full, Seat, Seats, Wanted};
pub(crate) use watches::{Watched, Watches};
