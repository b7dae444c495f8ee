//! The chosen plugins, run in order.

use std::time::Duration;

use api_machinery::object::Object;
use api_machinery::status::ApiError;

use crate::{ALL, Attributes, Context, Pass, Passes, Plugin, PluginEntry, Run, Settings};

/// `--enable-admission-plugins` and `--disable-admission-plugins`.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// On, whatever the default.
    pub enabled: Vec<String>,
    /// Off, whatever the default.
    pub disabled: Vec<String>,
}

/// Why a selection was refused; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No plugin has this name.
    #[error("{flag} plugin {name:?} is unknown")]
    Unknown {
        /// The flag.
        flag: &'static str,
        /// The name.
        name: String,
    },
    /// A name is in both lists.
    #[error("[{0}] in enable-admission-plugins and disable-admission-plugins overlapped")]
    Overlap(String),
}

/// The chosen plugins.
pub struct Chain {
    context: Context,
    plugins: Vec<Chosen>,
}

struct Chosen {
    name: &'static str,
    /// Its place in the list of all.
    place: usize,
    passes: Passes,
    plugin: Box<dyn Plugin>,
}

impl Selection {
    /// Every problem of the selection.
    #[must_use]
    pub fn problems(&self) -> Vec<SelectError> {
        let known = |name: &String| ALL.iter().any(|entry| entry.name == name);
        let unknown = |flag: &'static str, names: &[String]| -> Vec<SelectError> {
            let missing = names.iter().filter(|name| !known(name));
            missing.map(|name| SelectError::Unknown { flag, name: name.clone() }).collect()
        };
        let mut problems = unknown("enable-admission-plugins", &self.enabled);
        problems.extend(unknown("disable-admission-plugins", &self.disabled));
        let both: Vec<&str> =
            self.enabled.iter().filter(|name| self.disabled.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            problems.push(SelectError::Overlap(both.join(" ")));
        }
        problems
    }

    /// Whether a plugin runs.
    #[must_use]
    pub fn chooses(&self, entry: &PluginEntry) -> bool {
        let (name, by_default) = (entry.name, entry.enabled_by_default);
        let listed = |names: &[String]| names.iter().any(|own| own == name);
        listed(&self.enabled) || (by_default && !listed(&self.disabled))
    }
}

impl Chain {
    /// The chosen plugins, ready to run.
    #[must_use]
    pub fn new(selection: &Selection, settings: &Settings, context: Context) -> Self {
        let chosen = ALL.iter().enumerate().filter(|(_, entry)| selection.chooses(entry));
        let build = |(place, entry): (usize, &PluginEntry)| {
            let PluginEntry { name, passes, build, .. } = *entry;
            Chosen { name, place, passes, plugin: build(settings) }
        };
        Self { context, plugins: chosen.map(build).collect() }
    }

    /// The names of the chosen plugins in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|chosen| chosen.name)
    }

    /// Runs the mutating pass, and once more where a plugin asks for that as others may want to see what it changed; the
    /// first refusal ends it.
    ///
    /// # Errors
    /// What a plugin refused with.
    pub async fn mutate(
        &self,
        attributes: &Attributes,
        mut object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        self.mutate_once(attributes, object.as_deref_mut(), old).await?;
        if attributes.rounds.begin_second() {
            self.mutate_once(attributes, object, old).await?;
        }
        Ok(())
    }

    async fn mutate_once(
        &self,
        attributes: &Attributes,
        mut object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (clock, mut outcome) = (&self.context.clock, Ok(()));
        let begun = clock.monotonic();
        let mut since = begun;
        for Chosen { place, plugin, .. } in self.for_pass(Pass::Mutating, attributes) {
            let object = object.as_deref_mut();
            outcome = plugin.mutate(&self.context, attributes, object, old).await;
            let now = clock.monotonic();
            let run = run(Pass::Mutating, attributes, &outcome, now - since);
            self.context.recorder.plugin(*place, &run);
            since = now;
            if outcome.is_err() {
                break;
            }
        }
        self.context.recorder.pass(&run(Pass::Mutating, attributes, &outcome, since - begun));
        outcome
    }

    /// Runs the validating pass; the first refusal ends it.
    ///
    /// # Errors
    /// What a plugin refused with.
    pub async fn validate(
        &self,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (clock, mut outcome) = (&self.context.clock, Ok(()));
        let begun = clock.monotonic();
        let mut since = begun;
        for Chosen { place, plugin, .. } in self.for_pass(Pass::Validating, attributes) {
            outcome = plugin.validate(&self.context, attributes, object, old).await;
            let now = clock.monotonic();
            let run = run(Pass::Validating, attributes, &outcome, now - since);
            self.context.recorder.plugin(*place, &run);
            since = now;
            if outcome.is_err() {
                break;
            }
        }
        self.context.recorder.pass(&run(Pass::Validating, attributes, &outcome, since - begun));
        outcome
    }

    /// The plugins that have anything to do in a pass of a request.
    fn for_pass<'a>(&'a self, pass: Pass, attributes: &'a Attributes) -> impl Iterator<Item = &'a Chosen> + use<'a> {
        let needed =
            move |chosen: &&Chosen| chosen.passes.has(pass) && chosen.plugin.is_needed(&self.context, attributes);
        self.plugins.iter().filter(needed)
    }
}

fn run(pass: Pass, attributes: &Attributes, outcome: &Result<(), ApiError>, took: Duration) -> Run {
    Run { pass, operation: attributes.operation, rejected: outcome.is_err(), took }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::plugins::testing::{Fixture, create};
    use crate::recorder::Recorder;

    #[derive(Default)]
    struct Ran(Mutex<Vec<&'static str>>);

    impl Recorder for Ran {
        fn plugin(&self, place: usize, _: &Run) {
            self.0.lock().push(ALL[place].name);
        }
    }

    #[tokio::test]
    async fn what_ran_is_told_by_its_place_among_all() {
        let ran = Arc::new(Ran::default());
        let context = Context { recorder: Arc::clone(&ran) as _, ..Fixture::default().context() };
        let selection = Selection { enabled: vec!["AlwaysDeny".into()], disabled: vec!["NamespaceLifecycle".into()] };
        let chain = Chain::new(&selection, &Settings::default(), context);
        chain.validate(&create("", "configmaps"), None, None).await.expect_err("all is refused");
        assert_eq!(ran.0.lock().last(), Some(&"AlwaysDeny"));
    }

    #[test]
    fn selections_have_problems() {
        let cases = [
            ("", "", vec![]),
            ("NodeRestriction,EventRateLimit", "PodSecurity,ValidatingAdmissionPolicy", vec![]),
            (
                "Foo,EventRateLimit",
                "Bar",
                vec![
                    "enable-admission-plugins plugin \"Foo\" is unknown",
                    "disable-admission-plugins plugin \"Bar\" is unknown",
                ],
            ),
            (
                "Priority",
                "Priority",
                vec!["[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"],
            ),
        ];
        let names = |text: &str| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        for (enabled, disabled, expected) in cases {
            let selection = Selection { enabled: names(enabled), disabled: names(disabled) };
            let problems: Vec<String> = selection.problems().iter().map(ToString::to_string).collect();
            assert_eq!(problems, expected, "{enabled} {disabled}");
        }
    }
}
