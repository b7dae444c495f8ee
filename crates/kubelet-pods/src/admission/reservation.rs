//! What a handler has set aside for a pod: given back when it is dropped, unless it is committed.

type Undo = Box<dyn FnOnce() + Send>;

/// What one handler reserved.
#[must_use = "a reservation that is dropped is given back"]
pub(crate) struct Reservation(Option<Undo>);

impl Reservation {
    /// Nothing had to be reserved.
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    /// `undo` brings back the state before.
    pub(crate) fn undone_by(undo: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(undo)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}

/// What all handlers reserved for a pod that they agreed to.
#[derive(Default)]
#[must_use = "what is not committed is given back"]
pub(crate) struct Admitted(Vec<Reservation>);

impl Admitted {
    pub(super) fn hold(&mut self, reservation: Reservation) {
        self.0.push(reservation);
    }

    /// The pod has it now, until it is gone.
    pub(crate) fn commit(mut self) {
        self.0.iter_mut().for_each(|reservation| reservation.0 = None);
    }
}

impl Drop for Admitted {
    /// The last first: who comes later may have built on what came before.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
