//! A list of objects of any type, as the table-driven codecs see it.

use api_machinery::api;
use api_machinery::meta::ListMeta;
use api_machinery::object::{Object, Unstructured};
use api_machinery::reflect::{Field, List, Shape, View, ViewMut};

/// A list of objects.
#[api(group = "", version = "v1", kind = "List")]
pub(super) struct ListBody {
    /// Version and paging.
    #[field(1, always)]
    pub(super) metadata: ListMeta,
    /// The objects.
    #[field(2, always)]
    pub(super) items: Items,
}

/// Objects of one type that is known at run time.
#[derive(Clone)]
pub(super) struct Items {
    pub(super) empty: fn() -> Box<dyn Object>,
    pub(super) items: Vec<Item>,
}

/// One of them.
#[derive(Clone)]
pub(super) struct Item(pub(super) Box<dyn Object>);

fn empty_item() -> Box<dyn Object> {
    Box::new(Unstructured::default())
}

impl Default for Items {
    fn default() -> Self {
        Self { empty: empty_item, items: Vec::new() }
    }
}

impl Default for Item {
    fn default() -> Self {
        Self(empty_item())
    }
}

fn item_shape() -> Shape {
    Shape::Dynamic
}

fn items_shape() -> Shape {
    Shape::List(item_shape)
}

impl Field for Items {
    fn view(&self) -> View<'_> {
        View::List(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::List(self)
    }
    fn shape() -> Shape {
        items_shape()
    }
}

impl List for Items {
    fn list_shape(&self) -> Shape {
        items_shape()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn item(&self, index: usize) -> Option<&dyn Field> {
        self.items.get(index).map(|item| item as &dyn Field)
    }
    fn item_mut(&mut self, index: usize) -> Option<&mut dyn Field> {
        self.items.get_mut(index).map(|item| item as &mut dyn Field)
    }
    fn push_default(&mut self) -> &mut dyn Field {
        let index = self.items.len();
        self.items.push(Item((self.empty)()));
        &mut self.items[index]
    }
    fn remove(&mut self, index: usize) {
        if index < self.items.len() {
            self.items.remove(index);
        }
    }
    fn clear(&mut self) {
        self.items.clear();
    }
}

impl Field for Item {
    fn view(&self) -> View<'_> {
        View::Struct(self.0.as_reflect())
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Struct(self.0.as_reflect_mut())
    }
    fn shape() -> Shape {
        item_shape()
    }
}
