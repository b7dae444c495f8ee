//! Random operations, compared step by step with a model that is too simple to be wrong.

use std::collections::BTreeMap;

use base::Rng;

use super::{Event, Expect, Revision, Subject, Txn, Write, event, text};

const STEPS: u64 = 400;
const NAMES: u64 = 12;

type Contents = BTreeMap<String, (String, Revision)>;

struct Change {
    revision: Revision,
    name: String,
    value: Option<String>,
    previous: Option<String>,
}

#[derive(Default)]
struct Model {
    now: Contents,
    history: Vec<Change>,
    snapshots: Vec<(Revision, Contents)>,
}

pub(super) async fn random_operations_agree_with_the_model(subject: Subject) {
    let rng = Rng::seeded(0x5eed);
    let start = subject.revision().await;
    let mut model = Model::default();
    for step in 0..STEPS {
        let name = format!("k{}", rng.below(NAMES));
        let known = model.now.get(&name).map_or(start, |(_, revision)| *revision);
        let expect = match rng.below(6) {
            0 => Expect::Absent,
            1 => Expect::At(Revision(known.0 - 1)),
            2..=4 => Expect::At(known),
            _ => Expect::Any,
        };
        let value = (rng.below(4) != 0).then(|| format!("v{step}"));
        let write = value.clone().map_or(Write::Delete, Write::put);
        let outcome = subject.txn(&name, expect, write).await;
        model.check(&name, expect, value, outcome);
    }
    for (revision, contents) in &model.snapshots {
        let expected: Vec<_> = contents.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect();
        assert_eq!(subject.contents(Some(*revision)).await, expected, "at {revision}");
    }
    let mut watch = subject.watch(start);
    for change in &model.history {
        change.check(&subject, &event(&mut watch).await);
    }
}

impl Model {
    fn check(&mut self, name: &str, expect: Expect, value: Option<String>, outcome: Txn) {
        let current = self.now.get(name).cloned();
        let holds = match expect {
            Expect::Absent => current.is_none(),
            Expect::At(at) => current.as_ref().is_some_and(|(_, revision)| *revision == at),
            Expect::Any => true,
        };
        let (happened, revision, found) = match outcome {
            Txn::Committed { revision, previous } => (true, revision, previous),
            Txn::Conflict { revision, current } => (false, revision, current),
        };
        assert_eq!(happened, holds, "{name} {expect:?}");
        assert_eq!(found.map(|kv| (text(&kv), kv.mod_revision)), current, "{name} {expect:?}");
        if !holds || (value.is_none() && current.is_none()) {
            return;
        }
        match &value {
            Some(value) => drop(self.now.insert(name.to_owned(), (value.clone(), revision))),
            None => drop(self.now.remove(name)),
        }
        let previous = current.map(|(value, _)| value);
        self.history.push(Change { revision, name: name.to_owned(), value, previous });
        self.snapshots.push((revision, self.now.clone()));
    }
}

impl Change {
    fn check(&self, subject: &Subject, event: &Event) {
        let value = if let Event::Put { kv, .. } = event { Some(text(kv)) } else { None };
        assert_eq!((event.revision(), value), (self.revision, self.value.clone()));
        assert_eq!(subject.name_of(event.key()), self.name);
        assert_eq!(event.previous().map(text), self.previous, "before {} at {}", self.name, self.revision);
    }
}
