//! Conditions that a request has to meet for a webhook or policy to be asked at all.

use cel::{Environment, Value};

use crate::budget::{Budget, MATCH_CONDITIONS, evaluate};
use crate::compile::{Compiled, Wanted};
use crate::scene::Scene;

/// What is the same for all who look at a request, and can be said without asking anybody.
const SEEN_BY_ALL: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

/// The conditions of a webhook or policy, compiled once.
#[derive(Debug, Default)]
pub struct MatchConditions {
    named: Vec<(String, Compiled)>,
    /// Whether they read nothing but what all see.
    of_all: bool,
}

/// Whether the conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched<'c> {
    /// All do.
    Yes,
    /// One does not, whatever became of the others.
    No {
        /// Its name.
        condition: &'c str,
        /// How many of those before it failed.
        failed: usize,
    },
    /// None says no, but some failed: what each says. The failure policy decides.
    Failed(Vec<String>),
}

impl MatchConditions {
    /// Compiles conditions, by their names and expressions.
    #[must_use]
    pub fn new<'c>(env: &Environment, conditions: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        let compile = |(name, source): (&str, &str)| (name.to_owned(), Compiled::new(env, source, Wanted::Bool));
        let named: Vec<_> = conditions.into_iter().map(compile).collect();
        let of_all = named.iter().all(|(_, compiled)| {
            compiled.program.as_ref().is_ok_and(|program| program.variables().all(|name| SEEN_BY_ALL.contains(&name)))
        });
        Self { named, of_all }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The expressions, where they read nothing but what all see of a request: whoever has the same ones has the same answer.
    #[must_use]
    pub fn of_all(&self) -> Option<Vec<&str>> {
        self.of_all.then(|| self.named.iter().map(|(_, compiled)| compiled.source.as_str()).collect())
    }

    /// Whether a request meets them.
    #[must_use]
    pub fn evaluate<'a>(&'a self, scene: &Scene<'a>) -> Matched<'a> {
        let mut budget = Budget::of(MATCH_CONDITIONS);
        let mut errors = Vec::new();
        for (name, compiled) in &self.named {
            match evaluate(compiled, scene, &mut budget) {
                Ok(Ok(Value::Bool(true))) => {}
                Ok(Ok(_)) => return Matched::No { condition: name, failed: errors.len() },
                Ok(Err(error)) => errors.push(error.to_string()),
                Err(out) => return Matched::Failed(vec![out.to_string()]),
            }
        }
        if errors.is_empty() { Matched::Yes } else { Matched::Failed(errors) }
    }
}
