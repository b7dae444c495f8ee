//! What a new value brings.

use api_machinery::json::Writer;
use api_machinery::reflect::{Field, FieldType, List, Map, Presence, Reflect, View, is_zero, written_fields};
use api_machinery::value::to_value;

use super::compare::Difference;
use super::{granular, item_step, key_of, member_type};
use crate::apply::field_set::{Entry, FieldSet, OWN_DOT};
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// All places that a new object has and an empty one of its type has not, as the text of a set, from the object as it
/// stands: creates are the most frequent writes, and neither a free-form copy of the object nor the set is made for them.
/// The empty object is what Go prints of one, so members such as `spec`, or `containers` as null, are there already and
/// belong to nobody; what [`compare`](super::compare) finds added or modified is the same.
pub fn added(value: View<'_>, node: TypeNode<'_>, without: Without<'_>) -> String {
    let mut places = Places::default();
    match value {
        View::Struct(value) => places.object(|places| places.members(value, node, Base::Empty, without)),
        View::Dynamic(value) => {
            let found = Difference::of(None, Some(value), node).added.below;
            without.from(found).write(&mut places.out, false);
        }
        _ => places.object(|_| ()),
    }
    places.out.into_string()
}

/// What is left out: declared members and what is below them. Sets that go on through a list or a map count up to there.
#[derive(Clone, Copy, Default)]
pub struct Without<'a> {
    /// These places and all below them.
    pub trees: Option<&'a FieldSet>,
    /// These places alone.
    pub places: Option<&'a FieldSet>,
}

impl Without<'_> {
    /// What is left out below a step, and whether the step itself is; nothing where its whole tree is.
    fn below(self, step: &Element) -> Option<(Self, bool)> {
        let [tree, place] = [self.trees, self.places].map(|set| set.and_then(|set| set.get(step)));
        if tree.is_some_and(|tree| tree.owned) {
            return None;
        }
        let below = Self { trees: tree.map(|tree| &tree.below), places: place.map(|place| &place.below) };
        Some((below, place.is_some_and(|place| place.owned)))
    }

    fn from(self, mut set: FieldSet) -> FieldSet {
        if let Some(trees) = self.trees {
            set = set.without_trees(trees);
        }
        if let Some(places) = self.places {
            set = set.difference(places);
        }
        set
    }
}

/// What a value is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// There is nothing.
    Nothing,
    /// There is what Go prints of an empty value.
    Empty,
}

impl Base {
    /// What there is of a member.
    fn of(self, row: &FieldType, value: &View<'_>) -> Self {
        let is_printed_empty = match row.presence {
            Presence::Always => true,
            Presence::OmitZero => false,
            // `omitempty` leaves structs in place, and types with an encoding of their own are structs.
            Presence::OmitEmpty => matches!(value, View::Struct(_) | View::Leaf(_)),
        };
        if is_printed_empty { self } else { Self::Nothing }
    }
}

/// Whether a place is in the set itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owned {
    Yes,
    /// Only where nothing below it is.
    IfBare,
    No,
}

/// The set as it is written: a place comes when all before it are there, and goes again where it turns out that nothing of
/// it is in the set.
#[derive(Default)]
struct Places {
    out: Writer,
    /// Whether something stands already in the object that is written.
    follows: bool,
}

impl Places {
    fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.out.symbol('{');
        self.follows = false;
        members(self);
        self.out.symbol('}');
    }

    /// A place, and what is below it.
    fn entry(&mut self, step: &Element, owned: Owned, below: impl FnOnce(&mut Self)) {
        let (begin, followed) = (self.out.len(), self.follows);
        self.key(step);
        self.out.symbol('{');
        let open = self.out.len();
        self.follows = owned == Owned::Yes;
        if self.follows {
            self.out.raw(OWN_DOT);
        }
        let bare = self.out.len();
        below(self);
        if self.out.len() == bare {
            if owned == Owned::No {
                self.out.truncate(begin);
                self.follows = followed;
                return;
            }
            // A dot stands only beside others.
            self.out.truncate(open);
        }
        self.out.symbol('}');
        self.follows = true;
    }

    /// The key of a place that comes next.
    fn key(&mut self, step: &Element) {
        if self.follows {
            self.out.symbol(',');
        }
        step.write_key(&mut self.out);
    }

    /// A place of which it is known what is below it.
    fn found(&mut self, step: &Element, owned: Owned, found: &Entry) {
        let owned = match owned {
            Owned::Yes => found.owned,
            Owned::IfBare => found.below.is_empty(),
            Owned::No => false,
        };
        if owned || !found.below.is_empty() {
            self.key(step);
            found.below.write(&mut self.out, owned);
            self.follows = true;
        }
    }

    fn place(&mut self, step: &Element, owned: Owned, value: View<'_>, node: TypeNode<'_>, without: Without<'_>) {
        match (value, node.class()) {
            (View::Optional(Some(value)), _) => self.place(step, owned, value.view(), node, without),
            (View::Dynamic(value), _) => self.found(step, owned, &Difference::of(None, Some(value), node).added),
            (View::Leaf(leaf), Class::Deduced) => {
                self.found(step, owned, &Difference::of(None, Some(&leaf.to_value()), node).added);
            }
            (View::Struct(value), class) if granular(class) => {
                self.entry(step, owned, |places| places.members(value, node, Base::Nothing, without));
            }
            (View::Map(map), class) if granular(class) => self.entry(step, owned, |places| places.entries(map, node)),
            (View::List(list), Class::List(kind)) if granular(Class::List(kind)) => {
                self.entry(step, owned, |places| places.items(list, node, kind));
            }
            _ => self.entry(step, owned, |_| ()),
        }
    }

    /// The members of a struct by name, which is the order of the set.
    fn members(&mut self, value: &dyn Reflect, node: TypeNode<'_>, base: Base, without: Without<'_>) {
        let mut members = Members::default();
        members.collect(value);
        members.declared.sort_unstable_by_key(|(row, _)| row.name);
        let mut declared = members.declared.into_iter().peekable();
        if let Some(rest) = members.rest {
            rest.each(&mut |name, value| {
                while let Some((row, field)) = declared.next_if(|(row, _)| row.name < name) {
                    self.member(row, field, node, base, without);
                }
                self.place(
                    &Element::field(name),
                    Owned::Yes,
                    value.view(),
                    member_type(node, name),
                    Without::default(),
                );
            });
        }
        for (row, field) in declared {
            self.member(row, field, node, base, without);
        }
    }

    fn member(
        &mut self,
        row: &'static FieldType,
        field: &dyn Field,
        node: TypeNode<'_>,
        base: Base,
        without: Without<'_>,
    ) {
        let step = Element::declared(row.name);
        let Some((without, is_left_out)) = without.below(&step) else { return };
        let (view, node) = (field.view(), node.field(row));
        let owned = |otherwise| if is_left_out { Owned::No } else { otherwise };
        match base.of(row, &view) {
            Base::Nothing => self.place(&step, owned(Owned::Yes), view, node, without),
            // The empty object has it, too: it is not owned itself, unless it is owned as a whole.
            Base::Empty => match view {
                View::Struct(value) if granular(node.class()) => {
                    self.entry(&step, Owned::No, |places| places.members(value, node, Base::Empty, without));
                }
                _ if is_zero(field) => {}
                // A list of which nothing can be told apart, such as an atomic one, has been modified as a whole.
                view => self.place(&step, owned(Owned::IfBare), view, node, without),
            },
        }
    }

    fn entries(&mut self, map: &dyn Map, node: TypeNode<'_>) {
        map.each(&mut |name, value| {
            self.place(&Element::field(name), Owned::Yes, value.view(), member_type(node, name), Without::default());
        });
    }

    fn items(&mut self, list: &dyn List, list_type: TypeNode<'_>, kind: ListKind) {
        let step_to = |index: usize, item: &dyn Field| {
            let step = match (kind, item.view()) {
                (ListKind::Map, View::Struct(members)) => {
                    key_of(list_type, |name| written(members, name).map(to_value))
                }
                _ => item_step(list_type, kind, &to_value(item), index),
            };
            step.unwrap_or(Element::Index(index))
        };
        let items = (0..list.len()).filter_map(|index| Some((index, list.item(index)?)));
        let mut items: Vec<(Element, &dyn Field)> = items.map(|(index, item)| (step_to(index, item), item)).collect();
        items.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut items = items.into_iter().peekable();
        while let Some((step, item)) = items.next() {
            // Items that occur twice are one opaque place.
            if std::iter::from_fn(|| items.next_if(|(next, _)| *next == step)).count() > 0 {
                self.found(&step, Owned::Yes, &Entry::opaque());
            } else {
                self.place(&step, Owned::Yes, item.view(), list_type.item(), Without::default());
            }
        }
    }
}

/// The members of a struct and of those that are inline in it.
#[derive(Default)]
struct Members<'a> {
    declared: Vec<(&'static FieldType, &'a dyn Field)>,
    /// Those that are not declared.
    rest: Option<&'a dyn Map>,
}

impl<'a> Members<'a> {
    fn collect(&mut self, value: &'a dyn Reflect) {
        let rows = value.struct_type().fields;
        for (index, row) in written_fields(value).filter_map(|index| Some((index, rows.get(index)?))) {
            let field = value.field(index);
            match field.view() {
                View::Struct(inner) if row.inline => self.collect(inner),
                View::Map(map) if row.rest => self.rest = Some(map),
                _ => self.declared.push((row, field)),
            }
        }
    }
}

/// The field of this name, if JSON output has it; inline structs are looked through.
fn written<'a>(value: &'a dyn Reflect, name: &str) -> Option<&'a dyn Field> {
    let table = value.struct_type();
    if let Some(index) = table.index_of(name) {
        return written_fields(value).any(|written| written == index).then(|| value.field(index));
    }
    match value.field(table.inline()?).view() {
        View::Struct(inner) => written(inner, name),
        _ => None,
    }
}
