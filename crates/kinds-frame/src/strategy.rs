//! What most kinds do with `spec`, `status` and the generation when an object is written.

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use api_machinery::reflect::{copy_field, differs_in, reset_field};

use crate::rules::Endpoint;

/// The common handling of `status` and the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Nothing is wiped, kept or counted.
    Plain,
    /// The main endpoint keeps the stored status and the status endpoint the stored spec.
    Status,
    /// As `Status`, and the generation counts changes of the spec from 1.
    StatusAndGeneration,
    /// The generation counts changes of the spec from 1; there is no status.
    Generation,
}

impl Strategy {
    fn splits(self) -> bool {
        matches!(self, Strategy::Status | Strategy::StatusAndGeneration)
    }

    fn counts(self) -> bool {
        matches!(self, Strategy::Generation | Strategy::StatusAndGeneration)
    }

    /// Prepares an object that is to be created.
    pub fn prepare_create(self, object: &mut dyn Object) {
        if self.splits() {
            reset_field(object.as_reflect_mut(), "status");
        }
        if self.counts() {
            object.meta_mut().generation = 1;
        }
    }

    /// Prepares an object that is to replace `old`.
    pub fn prepare_update(self, endpoint: Endpoint, object: &mut dyn Object, old: &dyn Object) {
        object.meta_mut().generation = old.meta().generation;
        match endpoint {
            Endpoint::Main if self.splits() => copy_field(object.as_reflect_mut(), old.as_reflect(), "status"),
            Endpoint::Status if self.splits() => copy_field(object.as_reflect_mut(), old.as_reflect(), "spec"),
            _ => {}
        }
        if self.counts() && endpoint != Endpoint::Status && differs_in(object.as_reflect(), old.as_reflect(), "spec") {
            next_generation(object.meta_mut());
        }
    }
}

/// Counts a change. Behind the greatest generation comes the least, as upstream counts, which validation then refuses.
pub fn next_generation(meta: &mut ObjectMeta) {
    meta.generation = meta.generation.wrapping_add(1);
}

/// Keeps of stored metadata what most statuses may change and a few may not (`ResetObjectMetaForStatus`).
pub(crate) fn keep_metadata(meta: &mut ObjectMeta, stored: &ObjectMeta) {
    meta.deletion_timestamp = stored.deletion_timestamp;
    meta.generation = stored.generation;
    meta.labels.clone_from(&stored.labels);
    meta.annotations.clone_from(&stored.annotations);
    meta.finalizers.clone_from(&stored.finalizers);
    meta.owner_references.clone_from(&stored.owner_references);
}

#[cfg(test)]
mod tests {
    use api_types::apps_v1::Deployment;

    use super::*;

    #[test]
    fn status_and_spec_keep_to_their_endpoints() {
        let strategy = Strategy::StatusAndGeneration;
        let mut old = Deployment::default();
        old.status.replicas = 3;
        strategy.prepare_create(&mut old);
        assert_eq!((old.status.replicas, old.metadata.generation), (0, 1));
        old.status.replicas = 2;

        let mut new = old.clone();
        (new.spec.replicas, new.status.replicas) = (Some(5), 9);
        let mut through_status = new.clone();
        strategy.prepare_update(Endpoint::Main, &mut new, &old);
        assert_eq!((new.spec.replicas, new.status.replicas, new.metadata.generation), (Some(5), 2, 2));
        strategy.prepare_update(Endpoint::Status, &mut through_status, &old);
        let status = &through_status.status;
        assert_eq!((through_status.spec.replicas, status.replicas, through_status.metadata.generation), (None, 9, 1));
    }

    #[test]
    fn the_greatest_generation_has_no_next_one() {
        let mut old = Deployment::default();
        old.metadata.generation = i64::MAX;
        let mut new = old.clone();
        new.spec.replicas = Some(5);
        Strategy::StatusAndGeneration.prepare_update(Endpoint::Main, &mut new, &old);
        assert!(new.metadata.generation < 0, "{}", new.metadata.generation);
    }
}
