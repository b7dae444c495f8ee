//! Which extended resources device classes stand for (KEP-5004): a class's own name for it, and one that every class has.

use std::sync::Arc;

use api_types::resource_v1::DeviceClass;
use api_types::resource_v1::constants::DEVICE_CLASS_RESOURCE_PREFIX;
pub(crate) use component_base::shared_gates::EXTENDED_RESOURCE;

use crate::framework::BuildCx;
use crate::listers::Lister;

/// Index of classes by the extended resource that they name.
const BY_RESOURCE: &str = "extended-resource";

/// Finds the class of an extended resource.
#[derive(Clone)]
pub(crate) struct ExtendedResources(Option<Lister<DeviceClass>>);

impl ExtendedResources {
    /// Those of all classes; none where the feature is off.
    pub(crate) fn of(cx: &BuildCx) -> Self {
        let classes = cx.gates.enabled(EXTENDED_RESOURCE).then(|| cx.listers.of::<DeviceClass>());
        if let Some(classes) = &classes {
            classes.add_index(BY_RESOURCE, |class| class.spec.extended_resource_name.clone().into_iter().collect());
        }
        Self(classes)
    }

    /// The class whose devices an extended resource stands for. Of several that name it the newest counts, and of these the
    /// first by name.
    pub(crate) fn class_of(&self, resource: &str) -> Option<Arc<DeviceClass>> {
        let classes = self.0.as_ref()?;
        if let Some(name) = resource.strip_prefix(DEVICE_CLASS_RESOURCE_PREFIX) {
            return classes.find("", name);
        }
        let age = |class: &Arc<DeviceClass>| std::cmp::Reverse(class.metadata.creation_timestamp);
        classes
            .by_index(BY_RESOURCE, resource)
            .into_iter()
            .min_by(|one, other| (age(one), &one.metadata.name).cmp(&(age(other), &other.metadata.name)))
    }

    /// Whether a node offers a resource by devices, given what it lists of it itself.
    pub(crate) fn is_delegated(&self, resource: &str, allocatable: i64) -> bool {
        allocatable == 0 && self.class_of(resource).is_some()
    }

    /// The names by which a class's devices can be asked for.
    pub(crate) fn names_of(class: &DeviceClass) -> impl Iterator<Item = String> {
        let implicit = format!("{DEVICE_CLASS_RESOURCE_PREFIX}{}", class.metadata.name);
        class.spec.extended_resource_name.clone().into_iter().chain([implicit])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plugins::build_cx;
    use crate::test_objects::object;

    #[test]
    fn the_newest_class_of_a_name_counts() {
        let mut cx = build_cx();
        cx.gates = cx.gates.with(EXTENDED_RESOURCE, true);
        let names = ExtendedResources::of(&cx);
        for (name, resource, day) in
            [("old", "example.com/gpu", 1), ("b", "example.com/gpu", 2), ("a", "example.com/gpu", 2), ("z", "", 3)]
        {
            let mut class = json!({"metadata": {"name": name, "creationTimestamp": format!("2026-01-0{day}T00:00:00Z")}, "spec": {}});
            if !resource.is_empty() {
                class["spec"]["extendedResourceName"] = json!(resource);
            }
            cx.listers.of().put(Arc::new(object::<DeviceClass>(class)));
        }
        let class_of =
            |names: &ExtendedResources, resource| names.class_of(resource).map(|class| class.metadata.name.clone());
        for (resource, expected) in [
            ("example.com/gpu", Some("a")),
            ("deviceclass.resource.kubernetes.io/old", Some("old")),
            ("deviceclass.resource.kubernetes.io/none", None),
            ("example.com/other", None),
            ("", None),
        ] {
            assert_eq!(class_of(&names, resource).as_deref(), expected, "{resource}");
        }
        assert!(names.is_delegated("example.com/gpu", 0) && !names.is_delegated("example.com/gpu", 1));
        cx.gates = cx.gates.with(EXTENDED_RESOURCE, false);
        assert_eq!(class_of(&ExtendedResources::of(&cx), "example.com/gpu"), None);
    }
}
