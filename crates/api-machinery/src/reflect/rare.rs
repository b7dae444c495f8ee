//! Fields that are nearly never set, in one word.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::table::Shape;
use super::value::{Field, View, ViewMut};

/// A value that most structs of its kind leave empty. While it is empty it takes one word, whatever its type takes.
/// Reads as that type; empty and left out are the same.
#[derive(Clone, Debug, Default)]
pub struct Rare<T>(Option<Box<T>>);

/// A type whose empty value is there for as long as the program runs.
pub trait Vacant: Sized + 'static {
    /// The empty value.
    const VACANT: &'static Self;
}

impl Vacant for String {
    const VACANT: &'static Self = &Self::new();
}

impl<T: 'static> Vacant for Vec<T> {
    const VACANT: &'static Self = &Self::new();
}

impl<T: 'static> Vacant for BTreeMap<String, T> {
    const VACANT: &'static Self = &Self::new();
}

impl<T: 'static> Vacant for Option<T> {
    const VACANT: &'static Self = &None;
}

impl<T: Vacant> Deref for Rare<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::VACANT)
    }
}

impl<T: Vacant + Field + Clone + Default> Field for Rare<T> {
    fn is_unset(&self) -> bool {
        self.0.as_deref().is_none_or(T::is_unset)
    }
    fn view(&self) -> View<'_> {
        T::view(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        T::view_mut(self.0.get_or_insert_default())
    }
    fn shape() -> Shape {
        T::shape()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_takes_a_word_and_reads_as_its_type() {
        assert_eq!(size_of::<Rare<BTreeMap<String, String>>>(), size_of::<usize>());
        let mut names = Rare::<Vec<String>>::default();
        assert!(names.is_unset() && names.is_empty());
        let ViewMut::List(list) = names.view_mut() else { panic!("a list") };
        assert_eq!(list.len(), 0);
        assert!(names.is_unset(), "room was made, and nothing put there");
        let ViewMut::List(list) = names.view_mut() else { panic!("a list") };
        let ViewMut::Str(text) = list.push_default().view_mut() else { panic!("a text") };
        text.push('a');
        assert_eq!((names.is_unset(), names.as_slice()), (false, &["a".to_owned()][..]));

        let limit = Rare::<Option<i64>>::default();
        assert_eq!((limit.is_unset(), *limit), (true, None));
    }
}
