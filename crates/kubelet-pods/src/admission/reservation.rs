//! What a handler has set aside for a pod: given back when it is dropped, unless it is committed.

use futures_util::future::BoxFuture;

use super::Refusal;

type Undo = Box<dyn FnOnce() + Send>;
/// Somebody else has to be asked before anything is set aside.
type Call = BoxFuture<'static, Result<Reservation, Refusal>>;

/// What one handler reserved.
#[must_use = "a reservation that is dropped is given back"]
pub(crate) struct Reservation {
    undo: Option<Undo>,
    call: Option<Call>,
}

impl Reservation {
    /// Nothing had to be reserved.
    pub(crate) fn nothing() -> Self {
        Self { undo: None, call: None }
    }

    /// `undo` brings back the state before.
    pub(crate) fn undone_by(undo: impl FnOnce() + Send + 'static) -> Self {
        Self { undo: Some(Box::new(undo)), call: None }
    }

    /// What `call` reserves, once all handlers have agreed.
    pub(crate) fn asked_for(call: impl Future<Output = Result<Self, Refusal>> + Send + 'static) -> Self {
        Self { undo: None, call: Some(Box::pin(call)) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
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

    /// Asks those who have to be asked before the pod can have what is reserved.
    pub(crate) async fn confirmed(mut self) -> Result<Self, Refusal> {
        for reservation in &mut self.0 {
            if let Some(call) = reservation.call.take() {
                *reservation = call.await?;
            }
        }
        Ok(self)
    }

    /// The pod has it now, until it is gone.
    pub(crate) fn commit(mut self) {
        self.0.iter_mut().for_each(|reservation| reservation.undo = None);
    }
}

impl Drop for Admitted {
    /// The last first: who comes later may have built on what came before.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::super::Reason;
    use super::*;

    #[tokio::test]
    async fn who_is_asked_last_may_refuse_and_all_is_given_back() {
        for agrees in [true, false] {
            let journal = Arc::new(Mutex::new(Vec::new()));
            let note = |text: &'static str| {
                let journal = Arc::clone(&journal);
                move || journal.lock().push(text)
            };
            let mut admitted = Admitted::default();
            admitted.hold(Reservation::undone_by(note("first back")));
            let (asked, back) = (note("asked"), note("asked back"));
            admitted.hold(Reservation::asked_for(async move {
                asked();
                Ok(Reservation::undone_by(back))
            }));
            admitted.hold(Reservation::asked_for(async move {
                let refusal = Refusal::new(Reason::UnexpectedAdmissionError, "no");
                if agrees { Ok(Reservation::nothing()) } else { Err(refusal) }
            }));
            assert!(journal.lock().is_empty(), "nobody is asked before all have agreed");
            match admitted.confirmed().await {
                Ok(admitted) => admitted.commit(),
                Err(refusal) => assert_eq!(refusal.message, "no"),
            }
            let expected: &[&str] = if agrees { &["asked"] } else { &["asked", "asked back", "first back"] };
            assert_eq!(*journal.lock(), expected);
        }
    }
}
