//! Priority: turns the name of a priority class into the number that the scheduler compares.

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use api_types::scheduling_v1::PriorityClass;
use api_types::scheduling_v1alpha2::{GROUP, PodGroup};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "Priority",
    enabled_by_default: true,
    passes: Passes::Both,
    reads: &[&PriorityClass::TYPE],
    configuration: None,
    build: |settings| Box::new(Priority { of_groups: settings.group_priorities }),
};

const DEFAULT_POLICY: &str = "PreemptLowerPriority";

struct Priority {
    /// Whether groups have one.
    of_groups: bool,
}

#[async_trait]
impl Plugin for Priority {
    fn handles(&self, attributes: &Attributes) -> bool {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        let is_class = attributes.is(GROUP, "priorityclasses");
        let is_create = attributes.operation == Operation::Create;
        let is_group = self.of_groups && is_create && attributes.is(GROUP, "podgroups");
        written && (attributes.is("", "pods") || is_class || is_group)
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        if let Some(group) = object.downcast_mut::<PodGroup>() {
            return set_group_priority(cx, attributes, group);
        }
        let Some(pod) = object.downcast_mut::<Pod>() else { return Ok(()) };
        if attributes.operation == Operation::Create {
            return set_priority(cx, attributes, pod);
        }
        // Clients that do not know the fields must not take them away.
        if let Some(old) = old.and_then(|old| old.downcast_ref::<Pod>()) {
            pod.spec.priority = pod.spec.priority.or(old.spec.priority);
            pod.spec.preemption_policy =
                pod.spec.preemption_policy.take().or_else(|| old.spec.preemption_policy.clone());
        }
        Ok(())
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(class) = object.and_then(|object| object.downcast_ref::<PriorityClass>()) else { return Ok(()) };
        let other =
            cx.lookup.list::<PriorityClass>("").into_iter().find(|other| {
                class.global_default && other.global_default && other.metadata.name != class.metadata.name
            });
        match other {
            Some(other) => Err(attributes.forbidden(format_args!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.metadata.name
            ))),
            None => Ok(()),
        }
    }
}

/// The class of a name, or the default one where there is no name.
fn class_for(cx: &Context, attributes: &Attributes, name: &str) -> Result<Option<Arc<PriorityClass>>, ApiError> {
    let mut classes = cx.lookup.list::<PriorityClass>("").into_iter();
    if name.is_empty() {
        return Ok(classes.filter(|class| class.global_default).min_by_key(|class| class.value));
    }
    let named = classes.find(|class| class.metadata.name == name);
    let missing = || attributes.forbidden(format_args!("no PriorityClass with name {name} was found"));
    named.map(Some).ok_or_else(missing)
}

/// Gives a group the priority of its class (gate `WorkloadAwarePreemption`).
fn set_group_priority(cx: &Context, attributes: &Attributes, group: &mut PodGroup) -> Result<(), ApiError> {
    let class = class_for(cx, attributes, &group.spec.priority_class_name)?;
    let value = class.as_ref().map_or(0, |class| class.value);
    if let Some(given) = group.spec.priority.filter(|given| *given != value) {
        return Err(attributes.forbidden(format_args!(
            "priority set in the pod group ({given}) must match the priority computed ({value}) based on the priority \
             class set in the spec"
        )));
    }
    if let Some(class) = class {
        group.spec.priority_class_name.clone_from(&class.metadata.name);
    }
    group.spec.priority = Some(value);
    Ok(())
}

fn set_priority(cx: &Context, attributes: &Attributes, pod: &mut Pod) -> Result<(), ApiError> {
    let class = class_for(cx, attributes, &pod.spec.priority_class_name)?;
    let (value, policy) = match &class {
        Some(class) => {
            pod.spec.priority_class_name.clone_from(&class.metadata.name);
            (class.value, class.preemption_policy.clone())
        }
        None => (0, Some(DEFAULT_POLICY.to_owned())),
    };
    if let Some(given) = pod.spec.priority.filter(|given| *given != value) {
        return Err(attributes.forbidden(format_args!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        )));
    }
    pod.spec.priority = Some(value);
    match (&pod.spec.preemption_policy, policy) {
        (Some(given), Some(policy)) if *given != policy => Err(attributes.forbidden(format_args!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ))),
        (_, Some(policy)) => {
            pod.spec.preemption_policy = Some(policy);
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::plugins::testing::{Fixture, create};

    fn class(name: &str, value: i32, global_default: bool) -> PriorityClass {
        let mut class = PriorityClass { value, global_default, ..PriorityClass::default() };
        class.metadata.name = name.into();
        class.preemption_policy = Some(DEFAULT_POLICY.into());
        class
    }

    #[tokio::test]
    async fn groups_get_their_class_value() {
        let fixture = Fixture::default().with(vec![class("high", 1000, false), class("usual", 10, true)]);
        for (name, given, expected) in [
            ("high", None, Ok(("high", 1000))),
            ("high", Some(1000), Ok(("high", 1000))),
            ("", None, Ok(("usual", 10))),
            ("high", Some(7), Err("priority set in the pod group (7) must match the priority computed (1000)")),
            ("nope", None, Err("no PriorityClass with name nope was found")),
        ] {
            let mut group = PodGroup::default();
            group.spec.priority_class_name = name.into();
            group.spec.priority = given;
            let outcome = fixture.mutate(&ENTRY, &create(GROUP, "podgroups"), &mut group).await;
            match (outcome, expected) {
                (Ok(()), Ok((class, value))) => {
                    assert_eq!((group.spec.priority_class_name.as_str(), group.spec.priority), (class, Some(value)));
                }
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{}", error.message),
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn groups_have_none_without_the_gate() {
        let off = Settings { group_priorities: false, ..Settings::default() };
        for (resource, by_gate) in [(create(GROUP, "podgroups"), true), (create("", "pods"), false)] {
            assert_eq!((ENTRY.build)(&off).handles(&resource), !by_gate);
            assert!((ENTRY.build)(&Settings::default()).handles(&resource));
        }
    }

    #[tokio::test]
    async fn pods_get_their_class_value() {
        let priority_classes = vec![class("high", 1000, false), class("usual", 10, true), class("low", 5, true)];
        let fixture = Fixture::default().with(priority_classes);
        for (name, given, expected) in [
            ("high", None, Ok(("high", 1000))),
            ("", None, Ok(("low", 5))),
            ("high", Some(7), Err("must not be provided in pod spec")),
            ("nope", None, Err("no PriorityClass with name nope was found")),
        ] {
            let mut pod = Pod::default();
            pod.spec.priority_class_name = name.into();
            pod.spec.priority = given;
            let outcome = fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await;
            match (outcome, expected) {
                (Ok(()), Ok((class, value))) => {
                    assert_eq!((pod.spec.priority_class_name.as_str(), pod.spec.priority), (class, Some(value)));
                    fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
                }
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{}", error.message),
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
        }
    }
}
