//! The cluster's DNS server: answers for Services, endpoints and pods from what the API server says, and hands on
//! everything else. What a name means is computed purely ([`zone`]) over a small view of the cluster ([`data`]).

pub mod answer;
pub mod balance;
pub mod cache;
pub mod data;
pub mod forward;
mod informed;
pub mod loops;
pub mod metrics;
pub mod name;
pub mod responder;
mod run;
pub mod server;
pub mod zone;

pub use run::{main, run};
