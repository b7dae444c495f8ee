//! A large table with the kernel's own nft: writing it, writing it again as after a restart, changing one Service, taking
//! all away. Every program that is run has its deadline; what takes longer fails. `make bench-proxy` runs it with 10,000
//! Services and shows how long each part took.

use sys::packet_filter::PacketFilter;

use super::random_tests::{engine, with_kernels};
use super::tests::{Fixed, service, slice};
use super::*;
use crate::nftables::{STALE_DELAY, TABLE};

/// Enough for several transactions.
const SERVICES: usize = 600;

fn service_count() -> usize {
    std::env::var("COXSWAIN_PROXY_SERVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(SERVICES)
}

/// Services with three endpoints each, of which one is on this node.
fn fill(source: &Fixed, count: usize) {
    let mut state = source.0.lock();
    for index in 0..count {
        let (name, parts) = (format!("service-{index}"), format!("{}.{}", index / 250, index % 250));
        let key = ObjectKey::new("n", &name);
        let addresses = [1, 2, 3].map(|last| format!("10.{parts}.{last}"));
        let mut slice = slice(&name, &addresses.each_ref().map(String::as_str));
        slice.endpoints[0].node_name = Some("here".into());
        state.slices.insert(key.clone(), slice);
        state.services.insert(key, service(&name, &format!("10.200.{parts}")));
    }
}

async fn timed(engine: &mut Engine, what: &str, source: &Fixed, changed: BTreeSet<ObjectKey>) {
    let start = Instant::now();
    engine.sync(source, &changed, start).await.unwrap();
    println!("{what}: {:?}", start.elapsed());
}

async fn elements(filter: &dyn PacketFilter, set: &str) -> usize {
    let listed = filter.list(&["map", "ip", TABLE, set]).await.unwrap();
    let entries = listed["nftables"].as_array().unwrap();
    entries.iter().filter_map(|entry| entry["map"]["elem"].as_array()).map(Vec::len).sum()
}

#[tokio::test]
async fn a_large_table_is_written_and_taken_away() {
    with_kernels(["coxswain-test-proxy-large"], async |[filter]| {
        let (source, count) = (Fixed::default(), service_count());
        fill(&source, count);
        let mut before = engine(Family::V4, Arc::clone(&filter));
        timed(&mut before, "a table for all Services", &source, BTreeSet::new()).await;
        assert_eq!(elements(filter.as_ref(), "service-ips").await, count);
        let mut after = engine(Family::V4, Arc::clone(&filter));
        timed(&mut after, "the same again after a restart", &source, BTreeSet::new()).await;
        let one = ObjectKey::new("n", "service-1");
        source.0.lock().slices.remove(&one);
        timed(&mut after, "one Service loses its endpoints", &source, [one].into()).await;
        assert_eq!(elements(filter.as_ref(), "service-ips").await, count - 1);
        let all = source.services().into_iter().collect();
        source.0.lock().services.clear();
        timed(&mut after, "all Services go", &source, all).await;
        assert_eq!(elements(filter.as_ref(), "service-ips").await, 0);
        let start = Instant::now();
        after.sync(&source, &BTreeSet::new(), start + STALE_DELAY).await.unwrap();
        println!("their chains go: {:?}", start.elapsed());
        assert!(!after.has_stale() && after.take_counts().cleanup_failures == 0);
    })
    .await;
}
