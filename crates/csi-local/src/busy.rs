//! Volumes and snapshots that a call is at work on.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Status;

/// What is at work. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Busy(Arc<Mutex<BTreeSet<String>>>);

/// Somebody's turn, until it is dropped.
pub(crate) struct Turn {
    id: String,
    busy: Busy,
}

impl Busy {
    /// Takes the turn for an id.
    ///
    /// # Errors
    /// `ABORTED` while somebody else has it.
    pub(crate) fn take(&self, id: &str) -> Result<Turn, Status> {
        if !self.0.lock().insert(id.to_owned()) {
            return Err(Status::aborted(format!("an operation on {id} is still pending")));
        }
        Ok(Turn { id: id.to_owned(), busy: self.clone() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.busy.0.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_for_each_id() {
        let busy = Busy::default();
        let turn = busy.take("a").unwrap();
        assert_eq!(busy.take("a").err().unwrap().code(), tonic::Code::Aborted);
        assert!(busy.take("b").is_ok());
        drop(turn);
        assert!(busy.take("a").is_ok());
    }
}
