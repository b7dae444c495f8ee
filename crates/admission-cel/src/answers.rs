//! Questions of expressions to the authorizer, which may have to wait for others and so cannot be asked in the middle of an
//! evaluation.

use cel::kubernetes::authorizer::{Authorizer, Decision, Question};
use parking_lot::Mutex;

/// What is known of a request's user. A question that is not known is noted, and its answer is no for now: whoever evaluates
/// asks, notes the answers, and evaluates again until nothing new was asked. Each round answers at least one question, and
/// the cost of questions bounds their number.
#[derive(Default)]
pub struct Answers(Mutex<State>);

#[derive(Default)]
struct State {
    known: Vec<(Question, Decision)>,
    open: Vec<Question>,
}

impl Answers {
    /// Takes the questions that are not answered yet.
    #[must_use]
    pub fn take_open(&self) -> Vec<Question> {
        std::mem::take(&mut self.0.lock().open)
    }

    /// Notes an answer.
    pub fn note(&self, question: Question, decision: Decision) {
        self.0.lock().known.push((question, decision));
    }
}

impl Authorizer for Answers {
    fn check(&self, question: &Question) -> Decision {
        let mut state = self.0.lock();
        if let Some((_, decision)) = state.known.iter().find(|(known, _)| known == question) {
            return decision.clone();
        }
        if !state.open.contains(question) {
            state.open.push(question.clone());
        }
        Decision::default()
    }
}
