//! Compiled expressions that are kept and shared.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::environment::Environment;
use crate::issue::Issues;
use crate::program::Program;

/// Programs of one environment by their source, so many at most; the one that came first leaves first.
pub struct ProgramCache {
    environment: Environment,
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    programs: HashMap<Arc<str>, Arc<Program>>,
    order: VecDeque<Arc<str>>,
}

impl ProgramCache {
    /// A cache of `capacity` programs.
    #[must_use]
    pub fn new(environment: Environment, capacity: usize) -> Self {
        Self { environment, capacity: capacity.max(1), kept: Mutex::default() }
    }

    /// The program of an expression, compiled where it is not kept. Mistakes are not kept.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn compile(&self, source: &str) -> Result<Arc<Program>, Issues> {
        if let Some(program) = self.kept.lock().programs.get(source) {
            return Ok(Arc::clone(program));
        }
        // Others need not wait for this; the worst is that two compile the same.
        let program = Arc::new(self.environment.compile(source)?);
        let mut kept = self.kept.lock();
        let key: Arc<str> = source.into();
        if kept.programs.insert(Arc::clone(&key), Arc::clone(&program)).is_none() {
            kept.order.push_back(key);
        }
        while kept.order.len() > self.capacity
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.programs.remove(&oldest);
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use crate::library::STANDARD;

    use super::*;

    #[test]
    fn programs_are_shared_and_the_first_leaves_first() {
        let cache = ProgramCache::new(Environment::new(&[&STANDARD]), 2);
        let first = cache.compile("1").unwrap();
        assert!(Arc::ptr_eq(&first, &cache.compile("1").unwrap()));
        assert!(cache.compile("1 +").is_err());
        cache.compile("2").unwrap();
        assert!(Arc::ptr_eq(&first, &cache.compile("1").unwrap()));
        cache.compile("3").unwrap();
        assert!(!Arc::ptr_eq(&first, &cache.compile("1").unwrap()));
    }
}
