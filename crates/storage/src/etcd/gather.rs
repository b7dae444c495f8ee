//! Reads of single keys, gathered: those that come in while others are under way wait for a turn together and are then
//! asked for in one request. A request of its own costs this process and etcd several times what the read itself does, and
//! a read that waits sees no less than one that does not: every request begins after all of its readers did.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{Get, Key, StorageError};

/// How many requests are under way at once: enough that a reader who comes late waits for a part of a round trip only.
const TURNS: usize = 2;
/// How many keys one request may ask for: a quarter of what etcd takes in a transaction as it is delivered.
const MOST_KEYS: usize = 32;

/// Asks for the values of keys, at one revision or not; answers come in the keys' order.
pub(super) type Ask = Arc<dyn Fn(Vec<Key>) -> BoxFuture<'static, Result<Vec<Get>, StorageError>> + Send + Sync>;

type Answers = Result<Arc<Vec<Get>>, StorageError>;

/// Gathers reads.
pub(super) struct Gatherer {
    ask: Ask,
    turns: Arc<Semaphore>,
    open: Mutex<Gathering>,
}

/// What is asked for together. Whoever still waits for the answers drives the request: it needs no task, and ends with the
/// last of its readers.
#[derive(Clone)]
struct Gathering {
    /// `None` once they are asked for.
    keys: Arc<Mutex<Option<Vec<Key>>>>,
    answers: Shared<BoxFuture<'static, Answers>>,
}

impl Gatherer {
    pub(super) fn new(ask: Ask) -> Self {
        let turns = Arc::new(Semaphore::new(TURNS));
        let open = Mutex::new(Gathering::begin(Arc::clone(&turns), Arc::clone(&ask)));
        Self { ask, turns, open }
    }

    /// Reads a key.
    ///
    /// # Errors
    /// As the request that it became a part of.
    pub(super) async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        let (gathering, place) = self.join(key);
        let answers = gathering.answers.await?;
        answers.get(place).cloned().ok_or_else(|| StorageError::unavailable("etcd left out an answer"))
    }

    /// Joins those who wait for a turn, as the first where nobody does.
    fn join(&self, key: &Key) -> (Gathering, usize) {
        let mut open = self.open.lock();
        if let Some(place) = open.add(key) {
            return (open.clone(), place);
        }
        *open = Gathering::begin(Arc::clone(&self.turns), Arc::clone(&self.ask));
        let place = open.add(key).unwrap_or_default();
        (open.clone(), place)
    }
}

impl Gathering {
    fn begin(turns: Arc<Semaphore>, ask: Ask) -> Self {
        let keys = Arc::new(Mutex::new(Some(Vec::new())));
        let gathered = Arc::clone(&keys);
        let answers = async move {
            let _turn = turns.acquire().await.map_err(|_| StorageError::Closed)?;
            let keys = gathered.lock().take().unwrap_or_default();
            ask(keys).await.map(Arc::new)
        };
        Self { keys, answers: answers.boxed().shared() }
    }

    /// The place of the key among those that are asked for; `None` where it comes too late or finds no room.
    fn add(&self, key: &Key) -> Option<usize> {
        let mut keys = self.keys.lock();
        let keys = keys.as_mut().filter(|keys| keys.len() < MOST_KEYS)?;
        keys.push(key.clone());
        Some(keys.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::sync::mpsc;

    use super::*;
    use crate::Revision;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// A gatherer whose requests take a while and answer with each key's number as the revision, and what is asked for.
    fn gatherer(fails: bool) -> (Arc<Gatherer>, mpsc::Receiver<usize>) {
        let (asked, requests) = mpsc::channel(64);
        let ask: Ask = Arc::new(move |keys: Vec<Key>| {
            asked.try_send(keys.len()).expect("there is room");
            async move {
                tokio::time::sleep(ROUND_TRIP).await;
                let number = |key: Key| key.to_string().parse().map(Revision).expect("keys are numbers");
                let answers = keys.into_iter().map(|key| Get { kv: None, revision: number(key) });
                if fails { Err(StorageError::unavailable("no leader")) } else { Ok(answers.collect()) }
            }
            .boxed()
        });
        (Arc::new(Gatherer::new(ask)), requests)
    }

    fn sizes(mut requests: mpsc::Receiver<usize>) -> Vec<usize> {
        std::iter::from_fn(|| requests.try_recv().ok()).collect()
    }

    async fn read(gatherer: &Gatherer, number: usize) -> Result<i64, StorageError> {
        gatherer.get(&Key::from(number.to_string())).await.map(|got| got.revision.0)
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_all_turns_are_taken_is_asked_for_together() {
        let (gatherer, requests) = gatherer(false);
        let got = join_all((0..TURNS + 20).map(|number| read(&gatherer, number))).await;
        assert_eq!(got, (0..TURNS + 20).map(|number| Ok(number as i64)).collect::<Vec<_>>());
        assert_eq!(sizes(requests), [1, 1, 20]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_asks_for_no_more_than_it_may() {
        let (gatherer, requests) = gatherer(false);
        let got = join_all((0..TURNS + 2 * MOST_KEYS + 1).map(|number| read(&gatherer, number))).await;
        assert!(got.iter().enumerate().all(|(number, got)| *got == Ok(number as i64)), "{got:?}");
        assert_eq!(sizes(requests), [1, 1, MOST_KEYS, MOST_KEYS, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_who_leaves_takes_nobody_with_him() {
        let (gatherer, requests) = gatherer(false);
        let first = join_all((0..TURNS).map(|number| read(&gatherer, number)));
        let leaves = tokio::time::timeout(ROUND_TRIP * 3 / 2, read(&gatherer, 100));
        let stays = join_all([101, 102].map(|number| read(&gatherer, number)));
        let (_, left, stayed) = tokio::join!(first, leaves, stays);
        assert!(left.is_err(), "it left in the middle of the second request");
        assert_eq!(stayed, [Ok(101), Ok(102)]);
        assert_eq!(sizes(requests), [1, 1, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_all_left_hold_nobody_up() {
        let (gatherer, requests) = gatherer(false);
        let first = join_all((0..TURNS).map(|number| read(&gatherer, number)));
        let leave = join_all([100, 101].map(|number| tokio::time::timeout(ROUND_TRIP / 2, read(&gatherer, number))));
        let (_, left) = tokio::join!(first, leave);
        assert!(left.iter().all(Result::is_err));
        assert_eq!(join_all((200..200 + TURNS).map(|number| read(&gatherer, number))).await.len(), TURNS);
        assert_eq!(sizes(requests)[..TURNS], [1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_everybodys() {
        let (gatherer, requests) = gatherer(true);
        let got = join_all((0..TURNS + 2).map(|number| read(&gatherer, number))).await;
        assert!(got.iter().all(|got| *got == Err(StorageError::unavailable("no leader"))), "{got:?}");
        assert_eq!(sizes(requests), [1, 1, 2]);
    }
}
