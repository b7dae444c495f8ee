//! The containers of a pod's spec, of whichever sort, as rules walk them.

use std::borrow::Cow;

use api_machinery::field_path::Path;
use api_machinery::reflect::{Reflect, copy_field};
use api_types::core_v1::{Container, EphemeralContainerCommon, PodSpec};

/// An ephemeral container in the shape that the rules of containers look at.
pub fn as_container(common: &EphemeralContainerCommon) -> Container {
    let mut container = Container::default();
    for field in common.struct_type().fields {
        copy_field(&mut container, common, field.name);
    }
    container
}

/// Every container of a spec with its path, in the order in which upstream walks them.
pub fn each_container<'a>(spec: &'a PodSpec, path: &Path) -> Vec<(Path, Cow<'a, Container>)> {
    fn list<'a>(at: Path, containers: &'a [Container]) -> impl Iterator<Item = (Path, Cow<'a, Container>)> {
        containers.iter().enumerate().map(move |(index, container)| (at.index(index), Cow::Borrowed(container)))
    }
    let ephemeral =
        spec.ephemeral_containers.iter().map(|container| as_container(&container.ephemeral_container_common));
    let at = path.child("ephemeralContainers");
    list(path.child("initContainers"), &spec.init_containers)
        .chain(list(path.child("containers"), &spec.containers))
        .chain(ephemeral.enumerate().map(|(index, container)| (at.index(index), Cow::Owned(container))))
        .collect()
}
