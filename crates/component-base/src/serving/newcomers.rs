//! Connections whose client has not shown who it is. Each address may have so many of them, so that one machine cannot
//! take all the room that a server has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The connections of a server by address. There are no more addresses than connections.
#[derive(Debug)]
pub(super) struct Newcomers {
    /// Per address; nothing for no bound.
    limit: Option<usize>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Newcomers {
    pub(super) fn new(limit: Option<usize>) -> Arc<Self> {
        Arc::new(Self { limit, open: Mutex::default() })
    }

    /// Takes a place for one more connection; nothing when its address has as many as it may.
    pub(super) fn admit(self: &Arc<Self>, remote: IpAddr) -> Option<Newcomer> {
        let Some(limit) = self.limit else { return Some(Newcomer::default()) };
        let origin = origin(remote);
        let mut open = self.open.lock();
        let count = open.entry(origin).or_insert(0);
        if *count >= limit {
            return None;
        }
        *count += 1;
        drop(open);
        Some(Newcomer(Some(Arc::new(Slot { all: Arc::clone(self), origin, is_held: AtomicBool::new(true) }))))
    }

    fn give_back(&self, origin: IpAddr) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                open.remove(&origin);
            }
        }
    }
}

/// Who has one IPv6 address has the whole network of it.
fn origin(remote: IpAddr) -> IpAddr {
    match remote.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// A connection's place among those that nobody knows, in the extensions of each request.
#[derive(Debug, Clone, Default)]
pub struct Newcomer(Option<Arc<Slot>>);

impl Newcomer {
    /// The client has shown who it is: the connection counts no longer.
    pub fn is_known(&self) {
        if let Some(place) = &self.0 {
            place.give_back();
        }
    }
}

#[derive(Debug)]
struct Slot {
    all: Arc<Newcomers>,
    origin: IpAddr,
    is_held: AtomicBool,
}

impl Slot {
    fn give_back(&self) {
        if self.is_held.swap(false, Ordering::Relaxed) {
            self.all.give_back(self.origin);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_budget() {
        let all = Newcomers::new(Some(2));
        let admit = |address: &str| all.admit(address.parse().unwrap());
        let (one, two) = (admit("10.0.0.1").unwrap(), admit("::ffff:10.0.0.1").unwrap());
        assert!(admit("10.0.0.1").is_none());
        assert!(admit("10.0.0.2").is_some());
        one.is_known();
        one.clone().is_known();
        let three = admit("10.0.0.1").unwrap();
        assert!(admit("10.0.0.1").is_none(), "told twice, it is given back once");
        drop((one, two));
        let _four = admit("10.0.0.1").unwrap();
        let _network = (admit("2001:db8::1").unwrap(), admit("2001:db8::2").unwrap());
        assert!(admit("2001:db8::3").is_none());
        assert!(admit("2001:db8:0:1::3").is_some());
        drop(three);
        assert_eq!(all.open.lock().len(), 2, "what is gone is forgotten");
        assert!(Newcomers::new(None).admit("10.0.0.1".parse().unwrap()).is_some());
    }
}
