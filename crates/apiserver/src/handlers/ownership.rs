//! Who owns which fields: the record in `metadata.managedFields`, kept by the rules of crate `schema`.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::meta::ManagedFieldsEntry;
use api_machinery::object::Object;
use api_machinery::reflect::View;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_machinery::value::{Value, differing};
use component_base::Gates;
use kinds::rules::Rules;
use schema::TypeNode;
use schema::apply::{ApplyOptions, FieldManager, FieldSet, Versions};

use super::target::Target;

/// The ownership of the fields of one endpoint.
pub(crate) struct Ownership<'a> {
    manager: FieldManager<'a>,
    /// What makes empty objects; nothing for those that are not stored: an apply finds its scale there.
    rules: Option<&'a dyn Rules>,
    now: Time,
}

impl<'a> Ownership<'a> {
    /// The ownership at `target`, whose objects are of type `node`.
    pub(super) fn new(target: &'a Target, node: TypeNode<'a>, gates: &Gates, now: Time) -> Self {
        let subresource = target.subresource().map(|subresource| subresource.name).unwrap_or_default();
        let info = target.info();
        let manager = FieldManager {
            node,
            gvk: GroupVersionKind::named(info.group, info.version, info.kind),
            subresource: subresource.to_owned(),
            reset: FieldSet::of_fields(target.rules().reset_fields(gates, subresource)),
            versions: target.custom.as_ref().map_or(Versions::BuiltIn, |custom| Versions::Custom(&*custom.versions)),
        };
        Self { manager, rules: Some(target.rules()), now }
    }

    /// The ownership of objects that are not stored themselves: reviews, scales.
    pub(crate) fn of_virtual(object: &dyn Object, subresource: &str, now: Time) -> Self {
        let manager = FieldManager {
            node: TypeNode::of_struct(object.struct_type()),
            gvk: object.gvk(),
            subresource: subresource.to_owned(),
            reset: FieldSet::default(),
            versions: Versions::BuiltIn,
        };
        Self { manager, rules: None, now }
    }

    /// Records an ordinary write, in place of the live object if there is one.
    pub(crate) fn track(&self, live: Option<&dyn Object>, new: &mut dyn Object, manager: &str) {
        let given = std::mem::take(&mut new.meta_mut().managed_fields);
        new.meta_mut().managed_fields = if let Some(live) = live {
            let record = &live.meta().managed_fields;
            // The record is large and only in the way when objects are compared: both have the same one then.
            new.meta_mut().managed_fields.clone_from(record);
            let [before, after] = self.compared(live, new);
            self.manager.update((&before, record), (&after, &given), manager, self.now)
        } else {
            self.manager.create(View::Struct(new.as_reflect()), &given, manager, self.now)
        };
    }

    /// Two objects with the same record as they are compared: without what they have in common, unless it has to be seen
    /// whether they fit other versions.
    fn compared(&self, live: &dyn Object, new: &dyn Object) -> [Value; 2] {
        let are_alike = std::ptr::eq(live.struct_type(), new.struct_type());
        match self.manager.versions {
            Versions::BuiltIn if are_alike => differing(live.as_reflect(), new.as_reflect()).map(Value::Object),
            _ => [live, new].map(without_record),
        }
    }

    /// The object that an apply makes of the live one, and its record, which comes apart.
    ///
    /// # Errors
    /// 400, 409, 500.
    pub(super) fn apply(
        &self,
        live: Option<&dyn Object>,
        applied: &Value,
        manager: &str,
        force: bool,
    ) -> Result<(Value, Vec<ManagedFieldsEntry>), ApiError> {
        let bare = live.map(without_record);
        let live = bare.as_ref().zip(live.map(|live| live.meta().managed_fields.as_slice()));
        let empty = self.rules.map(|rules| rules.new_object().to_value()).unwrap_or_default();
        let options = ApplyOptions { manager, force, now: self.now, empty: &empty };
        self.manager.apply(live, applied, options).map_err(ApiError::from)
    }
}

/// An object as a free-form value, without its record.
fn without_record(object: &dyn Object) -> Value {
    let mut bare = object.clone_object();
    bare.meta_mut().managed_fields.clear();
    bare.to_value()
}

#[cfg(test)]
mod tests {
    use schema::apply::typed::{Without, added, compare};

    use super::super::golden::{golden_objects, read, variants};
    use super::*;

    /// Walking a typed object finds the same places as comparing its free-form copy with that of an empty one, and leaves out
    /// the same.
    #[test]
    fn golden_objects_bring_the_same_places_typed_and_free_form() {
        let Some((golden, without)) = golden_objects() else { return };
        let [trees, places] = [
            &["status", "metadata.labels", "spec.template.spec"] as &[_],
            &["metadata", "metadata.name", "metadata.annotations", "spec", "spec.template.metadata.labels", "data"],
        ]
        .map(FieldSet::of_fields);
        for (rules, object) in golden {
            let node = TypeNode::of_struct(rules.table());
            let brought = |without| added(View::Struct(object.as_reflect()), node, without);
            let changes = compare(&rules.new_object().to_value(), &object.to_value(), node);
            let expected = changes.into_written_and_removed().0;
            assert_eq!(brought(Without::default()), expected.to_fields_v1(), "{}", rules.info().kind);
            let left_out = Without { trees: Some(&trees), places: Some(&places) };
            let expected = expected.without_trees(&trees).difference(&places);
            assert_eq!(brought(left_out), expected.to_fields_v1(), "{}", rules.info().kind);
        }
        assert_eq!(without, ["APIService", "CustomResourceDefinition"], "kinds without a golden object");
    }

    /// Leaving out what is the same changes nothing of what a comparison finds.
    #[test]
    fn objects_are_compared_as_well_without_what_they_have_in_common() {
        let Some((golden, _)) = golden_objects() else { return };
        let mut compared = 0;
        for (rules, object) in golden {
            let node = TypeNode::of_struct(rules.table());
            let whole = object.to_value();
            for other in variants(&whole).iter().filter_map(|variant| read(rules, variant)) {
                for [one, two] in [[&*object, &*other], [&*other, &*object]] {
                    let [before, after] = differing(one.as_reflect(), two.as_reflect()).map(Value::Object);
                    let expected = compare(&one.to_value(), &two.to_value(), node);
                    assert_eq!(compare(&before, &after, node), expected, "{} {before} {after}", rules.info().kind);
                }
                compared += 1;
            }
        }
        assert!(compared > 5_000, "{compared}");
    }
}
