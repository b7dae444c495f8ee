//! The threads that one decision may use: `parallelism` of the configuration, and no more than the machine has processors.
//! What is asked of many nodes is asked side by side; the answers come in the order of the nodes, so that a decision
//! is the same with any number of threads.

use std::thread;

/// How many threads one look at the nodes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism(usize);

impl Default for Parallelism {
    /// The caller's thread alone.
    fn default() -> Self {
        Self(1)
    }
}

impl Parallelism {
    /// As configured, on this machine.
    #[must_use]
    pub fn of_machine(configured: i32) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::threads(usize::try_from(configured).unwrap_or(1).min(processors))
    }

    /// So many threads; at least one.
    #[must_use]
    pub fn threads(count: usize) -> Self {
        Self(count.max(1))
    }

    /// How many threads so much work is worth, when each should get `fewest` pieces of it at least.
    #[must_use]
    pub(crate) fn for_work(self, pieces: usize, fewest: usize) -> Self {
        Self::threads(self.0.min(pieces / fewest.max(1)))
    }

    /// How many there are.
    #[must_use]
    pub(crate) fn count(self) -> usize {
        self.0
    }

    /// Asks for each item; the answers are in the order of the items.
    pub(crate) fn map<T: Sync, R: Send>(self, items: &[T], ask: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let ask_all = |items: &[T]| items.iter().map(&ask).collect::<Vec<R>>();
        if self.0 == 1 || items.len() < 2 {
            return ask_all(items);
        }
        let mut parts = items.chunks(items.len().div_ceil(self.0));
        let (own, ask_all) = (parts.next().unwrap_or_default(), &ask_all);
        thread::scope(|scope| {
            let start = |part| (part, thread::Builder::new().spawn_scoped(scope, move || ask_all(part)).ok());
            let helpers: Vec<_> = parts.map(start).collect();
            let mut answers = ask_all(own);
            for (part, helper) in helpers {
                // Where the machine has no thread to give, the work is done here.
                match helper.map(thread::ScopedJoinHandle::join) {
                    None => answers.extend(ask_all(part)),
                    Some(Ok(more)) => answers.extend(more),
                    Some(Err(panic)) => std::panic::resume_unwind(panic),
                }
            }
            answers
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn answers_keep_their_order_and_no_more_threads_are_used_than_allowed() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 3, 16] {
            let used = Mutex::new(HashSet::new());
            let answers = Parallelism::threads(threads).map(&items, |item| {
                used.lock().insert(thread::current().id());
                2 * item
            });
            assert_eq!(answers, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
            let used = used.into_inner();
            assert_eq!(used.len(), threads);
            assert!(used.contains(&thread::current().id()));
        }
    }

    #[test]
    fn little_work_is_not_shared_out() {
        let many = Parallelism::threads(16);
        let counts =
            [(0, 64), (63, 64), (128, 64), (1 << 20, 64)].map(|(pieces, fewest)| many.for_work(pieces, fewest).0);
        assert_eq!(counts, [1, 1, 2, 16]);
        assert_eq!((Parallelism::of_machine(1).0, Parallelism::of_machine(-1).0), (1, 1));
        assert!(Parallelism::of_machine(i32::MAX).0 >= 1);
    }
}
