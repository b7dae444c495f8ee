//! Many writers at once.

use futures_util::future::join_all;

use super::{Expect, Subject, Txn, Write, event, text};

const WRITERS: usize = 16;
const ROUNDS: usize = 10;

pub(super) async fn one_winner_per_round(subject: Subject) {
    let mut at = subject.put("contended", "start").await;
    for round in 0..ROUNDS {
        let attempts = (0..WRITERS).map(|writer| {
            let write = Write::put(format!("{round}/{writer}"));
            let subject = &subject;
            async move { (writer, subject.txn("contended", Expect::At(at), write).await) }
        });
        let outcomes = join_all(attempts).await;
        let winners: Vec<_> = outcomes
            .iter()
            .filter_map(|(writer, outcome)| match outcome {
                Txn::Committed { revision, .. } => Some((*writer, *revision)),
                Txn::Conflict { .. } => None,
            })
            .collect();
        let [(winner, revision)] = winners[..] else { panic!("round {round}: the winners are {winners:?}") };
        let stored = subject.value("contended").await.expect("it exists");
        assert_eq!((text(&stored), stored.mod_revision), (format!("{round}/{winner}"), revision));
        at = revision;
    }
}

pub(super) async fn no_increment_is_lost(subject: Subject) {
    let start = subject.put("counter", "0").await;
    let mut watch = subject.watch(start);
    join_all((0..WRITERS).map(|_| increment(&subject, ROUNDS))).await;
    let stored = subject.value("counter").await.expect("it exists");
    assert_eq!(text(&stored), (WRITERS * ROUNDS).to_string());
    for expected in 1..=WRITERS * ROUNDS {
        let event = event(&mut watch).await;
        let crate::Event::Put { kv, previous: Some(previous) } = &event else { panic!("{event:?}") };
        assert_eq!((text(previous), text(kv)), ((expected - 1).to_string(), expected.to_string()));
    }
}

async fn increment(subject: &Subject, times: usize) {
    let mut current = subject.value("counter").await.expect("it exists");
    let mut done = 0;
    while done < times {
        let value: usize = text(&current).parse().expect("a number");
        let outcome =
            subject.txn("counter", Expect::At(current.mod_revision), Write::put((value + 1).to_string())).await;
        current = match outcome {
            Txn::Conflict { current, .. } => current.expect("nobody deletes it"),
            Txn::Committed { .. } => {
                done += 1;
                subject.value("counter").await.expect("it exists")
            }
        };
    }
}

/// Reads may be asked for together with those of others: each is of its own key, and sees what its reader wrote before.
pub(super) async fn everyone_reads_what_he_wrote(subject: Subject) {
    const READERS: usize = 100;
    join_all((0..READERS).map(|reader| read_back(&subject, reader))).await;
}

async fn read_back(subject: &Subject, reader: usize) {
    let (own, nobodys) = (format!("reader/{reader}"), format!("nobody/{reader}"));
    for round in 0..ROUNDS {
        let value = format!("{reader}/{round}");
        let revision = subject.put(&own, &value).await;
        let kv = subject.value(&own).await.expect("it was written");
        assert_eq!((subject.name_of(&kv.key), text(&kv), kv.mod_revision), (own.clone(), value, revision));
        assert!(subject.value(&nobodys).await.is_none());
    }
}
