//! Long work on the threads that requests share. It stops now and then to let others have their turn: a lease that is
//! renewed too late costs a node, a list that takes a little longer costs nothing.

/// How much is done without a stop: a millisecond's worth, or two.
const STOP_AFTER: u32 = 1_024;

/// Counts work, and stops when it was enough.
#[derive(Debug, Default)]
pub struct Pace {
    done: u32,
}

impl Pace {
    /// What a look at an object costs.
    pub const LOOKED_AT: u32 = 1;
    /// What reading or writing one costs.
    pub const CODED: u32 = 32;

    /// Some work was done; waits for a turn if it was enough.
    pub async fn after(&mut self, cost: u32) {
        self.done = self.done.saturating_add(cost);
        if self.done >= STOP_AFTER {
            self.done = 0;
            tokio::task::yield_now().await;
        }
    }
}
