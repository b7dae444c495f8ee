//! Questions about objects that somebody else converts: several at a time up to a bound, and those who want the same
//! share one. Nobody waits for a question about objects that he does not want, as its answer may never come.

use std::collections::HashSet;
use std::sync::Arc;

use api_machinery::status::ApiError;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use watch_cache::Stored;

/// How many objects a question is about at most.
const MOST_ASKED: usize = 500;
/// How many questions may be on their way at a time; more wait.
const MOST_AT_A_TIME: usize = 32;

/// What became of a question.
pub(crate) type Answer = Result<(), ApiError>;

/// The questions about objects in one version.
pub(crate) struct Questions {
    open: Mutex<Vec<Arc<Question>>>,
    seats: Semaphore,
}

/// A question that was not answered yet.
pub(crate) struct Question {
    items: Vec<Arc<Stored>>,
    answer: watch::Receiver<Option<Answer>>,
}

/// What somebody who misses objects does next.
pub(crate) enum Next<'q> {
    /// Asks.
    Ask(Asking<'q>),
    /// Waits for the answer to another's question, which is about nothing but objects that he misses.
    Wait(Arc<Question>),
}

/// A question that somebody has to ask. Dropped, it was never asked: who waits for it asks himself.
pub(crate) struct Asking<'q> {
    questions: &'q Questions,
    question: Arc<Question>,
    tell: watch::Sender<Option<Answer>>,
}

impl Default for Questions {
    fn default() -> Self {
        Self { open: Mutex::default(), seats: Semaphore::new(MOST_AT_A_TIME) }
    }
}

/// Which object it is.
fn identity(item: &Arc<Stored>) -> usize {
    Arc::as_ptr(item).addr()
}

impl Questions {
    /// The next question for somebody who misses these objects; nothing where he has all of them. What became known is
    /// struck from the list.
    pub(crate) fn next(&self, missing: &mut Vec<Arc<Stored>>, is_known: impl Fn(&Stored) -> bool) -> Option<Next<'_>> {
        // What a question brought back is known before it is closed, so that with this lock nothing is asked twice.
        let mut open = self.open.lock();
        missing.retain(|item| !is_known(item));
        let wanted: HashSet<usize> = missing.iter().map(identity).collect();
        let is_shared = |question: &&Arc<Question>| question.items.iter().all(|item| wanted.contains(&identity(item)));
        let shared: Vec<&Arc<Question>> = open.iter().filter(is_shared).collect();
        let asked: HashSet<usize> = shared.iter().flat_map(|question| &question.items).map(identity).collect();
        let is_free = |item: &&Arc<Stored>| !asked.contains(&identity(item));
        let items: Vec<_> = missing.iter().filter(is_free).take(MOST_ASKED).cloned().collect();
        if items.is_empty() {
            return shared.first().map(|question| Next::Wait(Arc::clone(question)));
        }
        let (tell, answer) = watch::channel(None);
        let question = Arc::new(Question { items, answer });
        open.push(Arc::clone(&question));
        Some(Next::Ask(Asking { questions: self, question, tell }))
    }
}

impl Asking<'_> {
    /// The objects, once it is this question's turn.
    pub(crate) async fn turn(&self) -> Result<(&[Arc<Stored>], tokio::sync::SemaphorePermit<'_>), ApiError> {
        let seat = self.questions.seats.acquire().await.map_err(ApiError::internal)?;
        Ok((&self.question.items, seat))
    }

    /// Tells all who wait for it what became of the question.
    pub(crate) fn close(self, answer: Answer) -> Arc<Question> {
        self.tell.send_replace(Some(answer));
        Arc::clone(&self.question)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.questions.open.lock().retain(|other| !Arc::ptr_eq(other, &self.question));
    }
}

impl Question {
    /// What became of it; nothing where it was never asked.
    pub(crate) async fn answer(&self) -> Option<Answer> {
        let mut answer = self.answer.clone();
        let told = answer.wait_for(Option::is_some).await.ok()?;
        told.clone()
    }

    /// Strikes what the question was about from a list: nobody asks about an object twice, whatever came of it.
    pub(crate) fn strike_from(&self, missing: &mut Vec<Arc<Stored>>) {
        let asked: HashSet<usize> = self.items.iter().map(identity).collect();
        missing.retain(|item| !asked.contains(&identity(item)));
    }
}
