//! Who may act as whom, in which way, and what of that was decided a moment ago.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use authn::{Impersonation, ImpersonationCheck, Mode, Step};
use authz::{Attributes, Authorizer, Decision, Outcome};
use base::{Expiring, SharedClock};
use component_base::lifecycle::Lifecycle;
use parking_lot::Mutex;
use pki::KeyedDigest;

use super::forbidden::forbidden;
use crate::gates;

/// How long what was allowed is remembered, as upstream.
const TTL: Duration = Duration::from_secs(10);
/// Answers that are remembered, for each kind of question.
const MAX_ANSWERS: usize = 10_000;
/// Users of whom the way that was allowed last is remembered, as upstream.
const MAX_USERS: usize = 10_000;
/// For so long; it only says what is tried first.
const LAST_TTL: Duration = Duration::from_secs(3600);

type Key = [u8; 32];

/// Decides about impersonation. Users are what somebody else's server sends, so that all is bounded.
pub(crate) struct Impersonations {
    modes: &'static [Mode],
    clock: SharedClock,
    digest: KeyedDigest,
    /// Requests that may be made as somebody else.
    requests: Mutex<Expiring<Key, ()>>,
    /// Users that somebody may be.
    users: Mutex<Expiring<Key, ()>>,
    /// The way that was allowed last, by user.
    last: Mutex<Expiring<String, Mode>>,
}

/// Whom the request continues as, and what the audit log says of why.
pub(crate) struct Granted {
    pub(crate) user: UserInfo,
    pub(crate) constraint: String,
}

impl Impersonations {
    /// Without the gate there is the old way only.
    pub(crate) fn new(lifecycle: &Lifecycle) -> Self {
        let is_constrained = lifecycle.gates().enabled(gates::CONSTRAINED_IMPERSONATION);
        Self {
            modes: if is_constrained { &Mode::ALL } else { &[Mode::Legacy] },
            clock: Arc::clone(lifecycle.clock()),
            digest: KeyedDigest::new(lifecycle.rng()),
            requests: Mutex::new(Expiring::new(MAX_ANSWERS)),
            users: Mutex::new(Expiring::new(MAX_ANSWERS)),
            last: Mutex::new(Expiring::new(MAX_USERS)),
        }
    }

    /// Whether the request of these attributes may be made as somebody else.
    ///
    /// # Errors
    /// The first refusal.
    pub(crate) async fn grant(
        &self,
        authorizer: &dyn Authorizer,
        attributes: &Attributes,
        preferences: &Impersonation,
    ) -> Result<Granted, ApiError> {
        let now = self.clock.monotonic();
        let last = self.last.lock().get(&attributes.user.username, now);
        let others = self.modes.iter().copied().filter(|mode| Some(*mode) != last);
        let mut first = None;
        for mode in last.into_iter().chain(others) {
            if !mode.applies(preferences, &attributes.user) {
                continue;
            }
            match self.by(mode, authorizer, attributes, preferences).await {
                Ok(()) => {
                    let user = attributes.user.username.clone();
                    self.last.lock().insert(user, mode, now + LAST_TTL, now);
                    return Ok(Granted { user: mode.target(preferences), constraint: mode.constraint() });
                }
                Err(refusal) => first = first.or(Some(refusal)),
            }
        }
        Err(first.unwrap_or_else(|| forbidden(attributes, &Outcome::no_opinion("all impersonation modes failed"))))
    }

    async fn by(
        &self,
        mode: Mode,
        authorizer: &dyn Authorizer,
        attributes: &Attributes,
        preferences: &Impersonation,
    ) -> Result<(), ApiError> {
        let asking = mode.asking(&attributes.user);
        let Some(verb) = mode.verb_on(&attributes.verb) else {
            return check_all(mode, authorizer, &asking, preferences).await;
        };
        let attributes = Attributes { user: asking.clone().into(), verb, ..attributes.clone() };
        let whom = format!("{:?} {:?}", mode, mode.remembered(preferences));
        let request = self.key(&whom, &told(&attributes));
        if self.knows(&self.requests, &request) {
            return Ok(());
        }
        check(authorizer, &attributes).await?;
        let user = self.key(&whom, &told_of(&asking));
        if !self.knows(&self.users, &user) {
            check_all(mode, authorizer, &asking, preferences).await?;
            self.remember(&self.users, user);
        }
        self.remember(&self.requests, request);
        Ok(())
    }

    fn key(&self, whom: &str, by: &str) -> Key {
        self.digest.of([whom.as_bytes(), by.as_bytes()])
    }

    fn knows(&self, answers: &Mutex<Expiring<Key, ()>>, key: &Key) -> bool {
        answers.lock().get(key, self.clock.monotonic()).is_some()
    }

    fn remember(&self, answers: &Mutex<Expiring<Key, ()>>, key: Key) {
        let now = self.clock.monotonic();
        answers.lock().insert(key, (), now + TTL, now);
    }
}

/// All of a user, so that no two are told alike. What is left out here does not compile.
fn told_of(user: &UserInfo) -> String {
    let UserInfo { username, uid, groups, extra } = user;
    format!("{:?}", (username, uid, groups, extra))
}

/// The same of a request.
fn told(attributes: &Attributes) -> String {
    let Attributes {
        user,
        verb,
        resource_request,
        namespace,
        group,
        version,
        resource,
        subresource,
        name,
        path,
        field_selector,
        label_selector,
    } = attributes;
    let place = (namespace, group, version, resource, subresource, name, path);
    format!("{} {:?}", told_of(user), (verb, resource_request, place, field_selector, label_selector))
}

async fn check_all(
    mode: Mode,
    authorizer: &dyn Authorizer,
    asking: &UserInfo,
    preferences: &Impersonation,
) -> Result<(), ApiError> {
    let attributes = |own: &ImpersonationCheck| of_check(asking, &mode.verb(), own);
    for step in mode.steps(preferences) {
        match step {
            Step::Check(own) => check(authorizer, &attributes(&own)).await?,
            Step::Refuse(own, why) => return Err(forbidden(&attributes(&own), &Outcome::no_opinion(why))),
            Step::Many(all, each) => {
                if check(authorizer, &attributes(&all)).await.is_ok() {
                    continue;
                }
                for own in &each {
                    check(authorizer, &attributes(own)).await?;
                }
            }
        }
    }
    Ok(())
}

async fn check(authorizer: &dyn Authorizer, attributes: &Attributes) -> Result<(), ApiError> {
    let outcome = authorizer.authorize(attributes).await;
    if outcome.decision == Decision::Allow { Ok(()) } else { Err(forbidden(attributes, &outcome)) }
}

fn of_check(asking: &UserInfo, verb: &str, own: &ImpersonationCheck) -> Attributes {
    Attributes {
        user: asking.clone().into(),
        verb: verb.to_owned(),
        resource_request: true,
        group: own.group.to_owned(),
        version: "v1".to_owned(),
        resource: own.resource.to_owned(),
        subresource: own.subresource.clone(),
        namespace: own.namespace.clone(),
        name: own.name.clone(),
        ..Attributes::default()
    }
}
