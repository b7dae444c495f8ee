//! Who is to lead, and what has to happen before that can be said. Pure: states and a time in, a step out.

use std::time::Duration;

use api_machinery::time::MicroTime;
use api_types::coordination_v1::Lease;
use api_types::coordination_v1::constants::coordinated_lease_strategy::OLDEST_EMULATION_VERSION;
use api_types::coordination_v1beta1::LeaseCandidate;

/// How long a candidate that was asked has to answer, and for how long an answer counts.
pub(super) const ELECTION: Duration = Duration::from_secs(5);
/// After this time without an answer a candidate is asked whether it is still there.
const STALE: Duration = Duration::from_secs(15 * 60);
/// After this time without an answer a candidate is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(30 * 60);
/// For how long a candidate that did not answer is not asked again: that of two elections.
const SILENCE: Duration = Duration::from_secs(10);

/// What to do about a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// All is as it should be, or nothing can be done.
    Rest,
    /// These candidates are asked whether they are there.
    Ask(Vec<String>),
    /// Some were asked and may still answer.
    Wait,
    /// This is what the lease should say.
    Elect(Election),
}

/// The outcome of an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Election {
    pub(super) strategy: String,
    /// Nobody, where the strategy is another's to apply.
    pub(super) leader: Option<String>,
}

/// Candidates of the newest release want to be chosen in different ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found conflicting strategies {one:?} and {other:?} among the candidates of the highest binary version")]
pub(super) struct Conflict {
    one: String,
    other: String,
}

/// The next step for a lease with these candidates.
///
/// # Errors
/// When it cannot be said how to choose.
pub(super) fn next(lease: Option<&Lease>, all: &[&LeaseCandidate], now: MicroTime) -> Result<Step, Conflict> {
    let candidates: Vec<&LeaseCandidate> = all.iter().copied().filter(|own| !is_forgotten(own, now)).collect();
    let present: Vec<&LeaseCandidate> = candidates.iter().copied().filter(|own| !is_overdue(own, now)).collect();
    let Some(best) = elected(if present.is_empty() { &candidates } else { &present })? else { return Ok(Step::Rest) };
    if !is_needed(lease, &candidates, &best, now) {
        return Ok(Step::Rest);
    }
    if candidates.iter().any(|own| is_waited_for(own, now)) {
        return Ok(Step::Wait);
    }
    let to_ask = candidates.iter().filter(|own| !is_fresh(own, now) && !is_silent(own, now));
    let to_ask: Vec<String> = to_ask.map(|own| own.metadata.name.clone()).collect();
    if !to_ask.is_empty() {
        return Ok(Step::Ask(to_ask));
    }
    let there: Vec<&LeaseCandidate> = candidates.into_iter().filter(|own| is_fresh(own, now)).collect();
    Ok(elected(&there)?.map_or(Step::Rest, Step::Elect))
}

/// Whether nobody has heard of a candidate for so long that it is as if it had never been.
pub(super) fn is_forgotten(candidate: &LeaseCandidate, now: MicroTime) -> bool {
    last_heard(candidate) + FORGOTTEN < now
}

/// Whether whoever holds a lease has let it run out.
pub(super) fn has_run_out(lease: &Lease, now: MicroTime) -> bool {
    let Some((renewed, seconds)) = lease.spec.renew_time.zip(lease.spec.lease_duration_seconds) else { return true };
    renewed + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)) < now
}

/// Who holds a lease; empty for nobody.
pub(super) fn holder(lease: &Lease) -> &str {
    lease.spec.holder_identity.as_deref().unwrap_or_default()
}

fn is_needed(lease: Option<&Lease>, candidates: &[&LeaseCandidate], best: &Election, now: MicroTime) -> bool {
    let Some(lease) = lease else { return true };
    let Some(leader) = &best.leader else { return lease.spec.strategy.as_ref() != Some(&best.strategy) };
    if holder(lease).is_empty() || has_run_out(lease, now) {
        return true;
    }
    let follows = lease.spec.preferred_holder.as_ref() == Some(leader);
    let has_stale = candidates.iter().any(|own| last_heard(own) + STALE < now && unanswered(own).is_none());
    has_stale || holder(lease) != leader && !follows
}

fn last_heard(candidate: &LeaseCandidate) -> MicroTime {
    let created = MicroTime::from(candidate.metadata.creation_timestamp);
    candidate.spec.renew_time.unwrap_or(created)
}

fn is_fresh(candidate: &LeaseCandidate, now: MicroTime) -> bool {
    last_heard(candidate) + ELECTION > now
}

/// When it was asked, if it has not answered since.
fn unanswered(candidate: &LeaseCandidate) -> Option<MicroTime> {
    candidate.spec.ping_time.filter(|asked| last_heard(candidate) < *asked)
}

fn is_waited_for(candidate: &LeaseCandidate, now: MicroTime) -> bool {
    unanswered(candidate).is_some_and(|asked| asked + ELECTION > now)
}

/// Whether it was asked and did not answer in time: it is not there until it does.
fn is_overdue(candidate: &LeaseCandidate, now: MicroTime) -> bool {
    unanswered(candidate).is_some_and(|asked| asked + ELECTION <= now)
}

fn is_silent(candidate: &LeaseCandidate, now: MicroTime) -> bool {
    unanswered(candidate).is_some_and(|asked| asked + SILENCE > now)
}

/// Who is best, and by which strategy; nothing where there is nobody.
fn elected(candidates: &[&LeaseCandidate]) -> Result<Option<Election>, Conflict> {
    let Some(newest) = candidates.iter().map(|own| version(&own.spec.binary_version)).max() else { return Ok(None) };
    let mut strategies =
        candidates.iter().filter(|own| version(&own.spec.binary_version) == newest).map(|own| &own.spec.strategy);
    let Some(strategy) = strategies.next() else { return Ok(None) };
    if let Some(other) = strategies.find(|other| *other != strategy) {
        return Err(Conflict { one: strategy.clone(), other: other.clone() });
    }
    let rank = |own: &&&LeaseCandidate| {
        let created = own.metadata.creation_timestamp;
        (version(&own.spec.emulation_version), version(&own.spec.binary_version), created, own.metadata.name.clone())
    };
    let best = candidates.iter().min_by_key(rank).filter(|_| strategy == OLDEST_EMULATION_VERSION);
    Ok(Some(Election { strategy: strategy.clone(), leader: best.map(|own| own.metadata.name.clone()) }))
}

/// The numbers of a version. One that is none comes last, as what nobody can take over from.
fn version(text: &str) -> Vec<u64> {
    let core = text.trim_start_matches('v');
    let core = core.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map(|number| number.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::ObjectMeta;
    use api_machinery::time::Time;
    use api_types::coordination_v1::LeaseSpec;
    use api_types::coordination_v1beta1::LeaseCandidateSpec;

    use super::*;

    const NOW: i64 = 1_790_000_000;

    fn at(seconds: i64) -> MicroTime {
        MicroTime::from_unix_micros((NOW + seconds) * 1_000_000)
    }

    /// A candidate with its versions, heard of and asked so many seconds from now.
    fn candidate(name: &str, binary: &str, emulated: &str, heard: i64, asked: Option<i64>) -> LeaseCandidate {
        LeaseCandidate {
            metadata: ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() },
            spec: LeaseCandidateSpec {
                lease_name: "l".to_owned(),
                ping_time: asked.map(at),
                renew_time: Some(at(heard)),
                binary_version: binary.to_owned(),
                emulation_version: emulated.to_owned(),
                strategy: OLDEST_EMULATION_VERSION.to_owned(),
            },
        }
    }

    fn lease(holder: &str, renewed: i64, preferred: Option<&str>) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(at(renewed)),
            preferred_holder: preferred.map(str::to_owned),
            strategy: Some(OLDEST_EMULATION_VERSION.to_owned()),
            ..LeaseSpec::default()
        };
        Lease { spec, ..Lease::default() }
    }

    fn step(lease: Option<&Lease>, candidates: &[LeaseCandidate]) -> Step {
        next(lease, &candidates.iter().collect::<Vec<_>>(), at(0)).unwrap()
    }

    fn elects(name: &str) -> Step {
        Step::Elect(Election { strategy: OLDEST_EMULATION_VERSION.to_owned(), leader: Some(name.to_owned()) })
    }

    #[test]
    fn the_oldest_emulation_leads() {
        let new = |name: &str, emulated: &str| candidate(name, "1.36.0", emulated, 0, None);
        for (candidates, leader) in [
            (vec![new("a", "1.36.0"), new("b", "1.35.0")], "b"),
            (vec![new("a", "1.35.0"), candidate("b", "1.35.0", "1.35.0", 0, None)], "b"),
            (vec![new("b", "1.36.0"), new("a", "1.36.0")], "a"),
            (vec![new("a", "1.10.0"), new("b", "1.9.0")], "b"),
            (vec![new("a", ""), new("b", "1.36.0")], "b"),
        ] {
            assert_eq!(step(None, &candidates), elects(leader), "{candidates:?}");
        }
        let mut older = new("old", "1.36.0");
        older.metadata.creation_timestamp = Time::from_unix_seconds(NOW - 100);
        let mut younger = new("a-young", "1.36.0");
        younger.metadata.creation_timestamp = Time::from_unix_seconds(NOW - 50);
        assert_eq!(step(None, &[younger, older]), elects("old"));
    }

    #[test]
    fn candidates_are_asked_before_one_is_chosen() {
        let quiet = candidate("q", "1.36.0", "1.36.0", -60, None);
        let here = candidate("h", "1.36.0", "1.36.0", -1, None);
        let asks = |names: &[&str]| Step::Ask(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(step(None, &[quiet.clone(), here.clone()]), asks(&["q"]), "one that was heard of need not be asked");
        let asked = candidate("q", "1.36.0", "1.36.0", -60, Some(-2));
        assert_eq!(step(None, &[asked, here.clone()]), Step::Wait);
        let silent = candidate("a", "1.36.0", "1.36.0", -60, Some(-6));
        assert_eq!(step(None, &[silent.clone(), here]), elects("h"), "who does not answer does not lead");
        assert_eq!(step(None, &[silent]), Step::Rest);
        let long_silent = candidate("a", "1.36.0", "1.36.0", -60, Some(-30));
        assert_eq!(step(None, &[long_silent]), asks(&["a"]), "it may be back");
        let answered = candidate("a", "1.36.0", "1.36.0", -1, Some(-2));
        assert_eq!(step(None, &[answered]), elects("a"));
        assert_eq!(step(None, &[candidate("a", "1.36.0", "1.36.0", -1_801, None)]), Step::Rest, "it is forgotten");
        assert_eq!(step(None, &[]), Step::Rest);
    }

    #[test]
    fn elections_are_held_when_they_are_needed() {
        let both = [candidate("a", "1.36.0", "1.35.0", -1, None), candidate("b", "1.36.0", "1.36.0", -1, None)];
        for (lease, expected) in [
            (lease("a", -1, None), Step::Rest),
            (lease("a", -16, None), elects("a")),
            (lease("", -1, None), elects("a")),
            (lease("b", -1, None), elects("a")),
            (lease("b", -1, Some("a")), Step::Rest),
            (lease("b", -16, Some("a")), elects("a")),
            (lease("gone", -1, None), elects("a")),
        ] {
            assert_eq!(step(Some(&lease), &both), expected, "{lease:?}");
        }
        let gone = [candidate("gone", "1.36.0", "1.34.0", -100, Some(-60)), both[0].clone()];
        assert_eq!(step(Some(&lease("a", -1, None)), &gone), Step::Rest, "who did not answer is no better");
        let stale = [both[0].clone(), candidate("s", "1.36.0", "1.36.0", -901, None)];
        assert_eq!(step(Some(&lease("a", -1, None)), &stale), Step::Ask(vec!["s".to_owned()]));
    }

    #[test]
    fn other_strategies_are_left_to_others() {
        let mut own = candidate("a", "1.36.0", "1.36.0", -1, None);
        own.spec.strategy = "example.com/mine".to_owned();
        let election = Election { strategy: "example.com/mine".to_owned(), leader: None };
        assert_eq!(step(None, &[own.clone()]), Step::Elect(election));
        let mut labelled = lease("x", -100, None);
        labelled.spec.strategy = Some("example.com/mine".to_owned());
        assert_eq!(step(Some(&labelled), &[own.clone()]), Step::Rest);
        let other = candidate("b", "1.36.0", "1.36.0", -1, None);
        assert!(next(None, &[&own, &other], at(0)).is_err());
        let older = candidate("b", "1.35.0", "1.35.0", -1, None);
        assert!(next(None, &[&own, &older], at(0)).is_ok(), "the newest decides how");
    }
}
