//! Who owns which fields: the record in `metadata.managedFields`, kept by the rules of crate `schema`.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Object;
use api_machinery::reflect::View;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_machinery::value::Value;
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
    pub(super) fn new(target: &'a Target, node: TypeNode<'a>, now: Time) -> Self {
        let subresource = target.subresource().map(|subresource| subresource.name).unwrap_or_default();
        let info = target.info();
        let manager = FieldManager {
            node,
            gvk: GroupVersionKind::named(info.group, info.version, info.kind),
            subresource: subresource.to_owned(),
            reset: FieldSet::of_fields(target.rules().reset_fields(subresource)),
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
        // The record is large and only in the way when objects are compared.
        let given = std::mem::take(&mut new.meta_mut().managed_fields);
        new.meta_mut().managed_fields = if let Some(live) = live {
            let mut bare = live.clone_object();
            let record = std::mem::take(&mut bare.meta_mut().managed_fields);
            self.manager.update((&bare.to_value(), &record), (&new.to_value(), &given), manager, self.now)
        } else {
            self.manager.create(View::Struct(new.as_reflect()), &given, manager, self.now)
        };
    }

    /// The object that an apply makes of the live one.
    ///
    /// # Errors
    /// 400, 409, 500.
    pub(super) fn apply(
        &self,
        live: Option<&dyn Object>,
        applied: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApiError> {
        let live = live.map(|live| live.to_value());
        let empty = self.rules.map(|rules| rules.new_object().to_value()).unwrap_or_default();
        let options = ApplyOptions { manager, force, now: self.now, empty: &empty };
        self.manager.apply(live.as_ref(), applied, options).map_err(ApiError::from)
    }
}

#[cfg(test)]
mod tests {
    use schema::apply::typed::{added, compare};

    use super::*;

    /// Walking a typed object finds the same places as comparing its free-form copy with that of an empty one.
    #[test]
    fn golden_objects_bring_the_same_places_typed_and_free_form() {
        let Some(golden) = test_facts::outside("api-roundtrip") else { return };
        let mut without = Vec::new();
        for rules in kinds::all() {
            let info = rules.info();
            let group = if info.group.is_empty() { "core" } else { info.group };
            let Ok(text) = std::fs::read(golden.join(format!("{group}.{}.{}.json", info.version, info.kind))) else {
                without.push(info.kind);
                continue;
            };
            let mut object = rules.new_object();
            api_machinery::json::decode(&text, object.as_reflect_mut()).expect("golden objects can be read");
            object.meta_mut().managed_fields.clear();
            let node = TypeNode::of_struct(rules.table());
            let found = added(View::Struct(object.as_reflect()), node);
            let changes = compare(&rules.new_object().to_value(), &object.to_value(), node);
            assert_eq!(found, changes.into_written_and_removed().0, "{}", info.kind);
        }
        assert_eq!(without, ["APIService", "CustomResourceDefinition"], "kinds without a golden object");
    }
}
