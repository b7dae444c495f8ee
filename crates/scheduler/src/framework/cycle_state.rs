//! What plugins remember between the steps of one cycle. Copies are cheap: data is copied when it is changed.

use std::any::{Any, TypeId};
use std::sync::Arc;

/// Something that a plugin remembers.
pub trait StateData: Any + Send + Sync {
    /// A copy that can be changed on its own.
    fn copy(&self) -> Arc<dyn StateData>;
    /// Itself, for looking at its type.
    fn as_any(&self) -> &dyn Any;
    /// Itself, for looking at its type.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Send + Sync + Clone> StateData for T {
    fn copy(&self) -> Arc<dyn StateData> {
        Arc::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A set of plugins of a profile, by their place in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PluginMask(u64);

impl PluginMask {
    /// How many plugins a profile may have.
    pub const LIMIT: usize = 64;

    /// Adds a plugin.
    pub fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    /// Whether the plugin is in the set.
    #[must_use]
    pub const fn contains(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }
}

/// The state of one cycle of one pod.
#[derive(Clone, Default)]
pub struct CycleState {
    data: Vec<(TypeId, Arc<dyn StateData>)>,
    /// Plugins whose filters have nothing to say about this pod.
    pub skip_filter: PluginMask,
    /// Plugins whose scores have nothing to say about this pod.
    pub skip_score: PluginMask,
    /// Whether it is noted how long each plugin takes in this cycle.
    pub(crate) is_sampled: bool,
}

impl CycleState {
    /// Remembers data, one piece for each type.
    pub fn put<T: StateData>(&mut self, data: T) {
        let id = TypeId::of::<T>();
        let data: Arc<dyn StateData> = Arc::new(data);
        match self.data.iter_mut().find(|(other, _)| *other == id) {
            Some((_, slot)) => *slot = data,
            None => self.data.push((id, data)),
        }
    }

    /// The data of a type.
    #[must_use]
    pub fn get<T: StateData>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        let (_, data) = self.data.iter().find(|(other, _)| *other == id)?;
        (**data).as_any().downcast_ref()
    }

    /// The data of a type, to be changed; it is copied first where another state shares it.
    pub fn get_mut<T: StateData>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        let (_, data) = self.data.iter_mut().find(|(other, _)| *other == id)?;
        if Arc::get_mut(data).is_none() {
            *data = (**data).copy();
        }
        Arc::get_mut(data)?.as_any_mut().downcast_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_do_not_see_later_changes() {
        let mut state = CycleState::default();
        state.put(1_u32);
        let mut copy = state.clone();
        *copy.get_mut::<u32>().unwrap() += 1;
        assert_eq!((state.get::<u32>(), copy.get::<u32>(), state.get::<u64>()), (Some(&1), Some(&2), None));
    }
}
