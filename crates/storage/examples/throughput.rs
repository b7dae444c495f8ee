//! How fast the stores of this process are: `cargo run --release -p storage --example throughput [DIRECTORY]`.
//!
//! Prints transactions per second for the memory store (with and without watchers) and for the embedded store at
//! several numbers of concurrent writers, all with 2 KiB values.

#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::sync::Arc;
use std::time::Duration;

use base::{SystemClock, TaskGroup};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use storage::{Backend, Embedded, EmbeddedOptions, Expect, Key, KeyRange, Memory, MemoryOptions, Revision, Write};
use tokio::time::Instant;

const VALUE_BYTES: usize = 2_048;
const KEYS: usize = 10_000;
const MEMORY_WRITES: usize = 300_000;
const MEASURE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() {
    let group = TaskGroup::new("throughput");
    for watchers in [0, 100] {
        let store = Memory::new(MemoryOptions::default(), SystemClock::shared(), &group);
        watch(&store, watchers, &group);
        let start = Instant::now();
        sequential(&*store, MEMORY_WRITES).await;
        report(&format!("memory, {watchers} watchers"), MEMORY_WRITES, start.elapsed());
        let start = Instant::now();
        let slice = store.range(&KeyRange::all(), 0, None).await.expect("a range");
        report("memory, one range", slice.kvs.len(), start.elapsed());
    }
    let directory = std::env::args().nth(1).unwrap_or_else(|| "throughput.data".to_owned());
    let options = EmbeddedOptions::new(directory);
    let store = Embedded::open(options, SystemClock::shared(), &group).await.expect("a store");
    for writers in [1, 16, 128, 512] {
        let start = Instant::now();
        let done = join_all((0..writers).map(|writer| write_for(&*store, writer, MEASURE))).await;
        report(&format!("embedded, {writers} writers"), done.iter().sum(), start.elapsed());
    }
    store.close(Duration::from_secs(30)).await;
}

fn watch(store: &Arc<Memory>, watchers: usize, group: &TaskGroup) {
    for index in 0..watchers {
        let mut events = store.watch(KeyRange::prefix(format!("/{index:02}/")), Revision(1));
        group.spawn_cancellable("watcher", async move { while events.next().await.is_some() {} });
    }
}

async fn sequential(store: &dyn Backend, writes: usize) {
    let value = bytes::Bytes::from(vec![b'x'; VALUE_BYTES]);
    let keys: Vec<Key> =
        (0..KEYS).map(|index| format!("/{:02}/namespace/object-{index}", index % 100).into()).collect();
    for index in 0..writes {
        let write = Write::Put { value: value.clone(), lease: None };
        store.txn(&keys[index % KEYS], Expect::Any, write).await.expect("a write");
        if index % 50_000 == 0 && index > 0 {
            let at = store.current_revision().await.expect("a revision");
            store.compact(Revision(at.0 - 10_000)).await.expect("a compaction");
        }
    }
}

async fn write_for(store: &dyn Backend, writer: usize, time: Duration) -> usize {
    let value = bytes::Bytes::from(vec![b'x'; VALUE_BYTES]);
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < time {
        let key = Key::from(format!("/{writer}/{}", done % 100));
        store.txn(&key, Expect::Any, Write::Put { value: value.clone(), lease: None }).await.expect("a write");
        done += 1;
    }
    done
}

fn report(what: &str, count: usize, time: Duration) {
    #[expect(clippy::cast_precision_loss, reason = "three digits are enough")]
    let rate = count as f64 / time.as_secs_f64();
    println!("{what:<24} {rate:>12.0}/s");
}
