//! Answers of programs, for as long as they are good.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::exchange::{Account, Answer, Scope};

/// How often what is not good any more is thrown away.
const PURGE_PERIOD: Duration = Duration::from_secs(15 * 60);
/// Answers that are kept of one program.
const MAX_ANSWERS: usize = 10_000;

/// What an answer is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    scope: Scope,
    /// The image, or the registry; nothing for all.
    of: String,
    account: String,
}

/// The answers of one program.
#[derive(Default)]
pub(super) struct Cache {
    answers: BTreeMap<Key, (Answer, Instant)>,
    purged: Option<Instant>,
}

/// What tells the accounts apart that an answer is not for both of.
pub(super) fn account_key(account: &Account, per_token: bool) -> String {
    let Account { namespace, name, uid, annotations, token } = account;
    let token = if per_token { kubelet_node::csi::hash(&[token]) } else { String::new() };
    format!("{namespace:?} {name:?} {uid:?} {annotations:?} {token}")
}

impl Cache {
    /// An answer that is good for an image; the nearest first.
    pub(super) fn get(&mut self, image: &str, account: &str, now: Instant) -> Option<Answer> {
        if self.purged.is_none_or(|at| now.duration_since(at) >= PURGE_PERIOD) {
            self.purge(now);
        }
        [Scope::Image, Scope::Registry, Scope::Global].into_iter().find_map(|scope| {
            let (answer, until) = self.answers.get(&key(scope, image, account))?;
            (now < *until).then(|| answer.clone())
        })
    }

    fn purge(&mut self, now: Instant) {
        self.answers.retain(|_, (_, until)| now < *until);
        self.purged = Some(now);
    }

    /// Keeps an answer about an image for as long as it is good.
    pub(super) fn put(&mut self, image: &str, account: &str, answer: &Answer, default: Duration, now: Instant) {
        let duration = answer.duration.unwrap_or(default);
        if self.answers.len() >= MAX_ANSWERS {
            self.purge(now);
        }
        if duration.is_zero() || self.answers.len() >= MAX_ANSWERS {
            return;
        }
        // What is good for longer than anybody lives is good for that long.
        let until = now.checked_add(duration).unwrap_or(now + Duration::from_secs(u64::from(u32::MAX)));
        self.answers.insert(key(answer.scope, image, account), (answer.clone(), until));
    }
}

fn key(scope: Scope, image: &str, account: &str) -> Key {
    let of = match scope {
        Scope::Image => image,
        Scope::Registry => image.split('/').next().unwrap_or_default(),
        Scope::Global => "",
    };
    Key { scope, of: of.to_owned(), account: account.to_owned() }
}
