//! A deployment of another size: all its replica sets get their share, also while it is paused.

use std::cmp::Ordering;

use super::arithmetic::{max_surge, rolls, size, wanted};
use super::plan::{Draft, Step, age};
use super::revisions;

impl Draft<'_> {
    /// Whether a replica set with pods was last scaled for another size of the deployment.
    pub(super) fn is_resized(&self) -> bool {
        let wanted = wanted(&self.deployment);
        self.sets
            .iter()
            .filter(|set| size(set) > 0)
            .any(|set| revisions::desired(set).is_some_and(|desired| desired != wanted))
    }

    /// Shares the size out, without starting or continuing a rollout.
    pub(super) fn resize(mut self) -> Step {
        self.sync_new();
        self.share_out();
        if self.deployment.spec.paused && super::rollback::asked_for(&self.deployment).is_none() {
            self.clean_up();
        }
        self.finish_without_progress()
    }

    fn share_out(&mut self) {
        let wanted = wanted(&self.deployment);
        if let Some(only) = self.only_one() {
            self.resize_set(only, wanted);
        } else if self.new_is_saturated() {
            for index in self.active_old() {
                self.set_size(index, 0);
            }
        } else if rolls(&self.deployment) {
            self.share_in_proportion();
        }
    }

    /// The one replica set that has pods; without any, the new one or the newest.
    fn only_one(&self) -> Option<usize> {
        let mut active = (0..self.sets.len()).filter(|index| size(&self.sets[*index]) > 0);
        match (active.next(), active.next()) {
            (None, _) => self.new.or_else(|| self.sets.len().checked_sub(1)),
            (only, None) => only,
            _ => None,
        }
    }

    fn new_is_saturated(&self) -> bool {
        let wanted = wanted(&self.deployment);
        self.new_set().is_some_and(|set| {
            size(set) == wanted && revisions::desired(set) == Some(wanted) && set.status.available_replicas == wanted
        })
    }

    fn share_in_proportion(&mut self) {
        let wanted = wanted(&self.deployment);
        let allowed = if wanted > 0 { wanted.saturating_add(max_surge(&self.deployment)) } else { 0 };
        let mut active: Vec<_> = (0..self.sets.len()).filter(|index| size(&self.sets[*index]) > 0).collect();
        // Two sets of two billion pods each have more than a size can say.
        let total: i64 = active.iter().map(|index| i64::from(size(&self.sets[*index]))).sum();
        let to_add = i64::from(allowed) - total;
        active.sort_by(|one, two| self.first_served(*one, *two, to_add));
        let mut sizes = Vec::with_capacity(active.len());
        let mut added = 0;
        for index in &active {
            let share = self.share(*index, to_add, added);
            added += share;
            sizes.push(i64::from(size(&self.sets[*index])) + share);
        }
        if let Some(first) = sizes.first_mut() {
            *first = (*first + to_add - added).max(0);
        }
        for (index, size) in active.into_iter().zip(sizes) {
            self.resize_set(index, i32::try_from(size.max(0)).unwrap_or(i32::MAX));
        }
    }

    /// Gives a set its share, and notes for which size of the deployment that is, also where it keeps its own: else the
    /// deployment would be resized for ever, and never rolled.
    fn resize_set(&mut self, index: usize, to: i32) {
        self.set_size(index, to);
        revisions::note_size(&self.deployment, &mut self.sets[index].metadata.annotations);
    }

    /// Large before small; of equal ones the newest gains first and the oldest loses first.
    fn first_served(&self, one: usize, two: usize, to_add: i64) -> Ordering {
        let (one, two) = (&self.sets[one], &self.sets[two]);
        let by_age = age(one).cmp(&age(two));
        size(two).cmp(&size(one)).then(if to_add > 0 { by_age.reverse() } else { by_age })
    }

    /// How much a set gains or loses, limited to what is left.
    fn share(&self, index: usize, to_add: i64, added: i64) -> i64 {
        if to_add == 0 || to_add == added {
            return 0;
        }
        let fraction = i64::from(self.fraction(index));
        if to_add > 0 { fraction.min(to_add - added) } else { fraction.max(to_add - added) }
    }

    /// What keeps the set's part of the whole as it was when it was last scaled, rounded half away from zero.
    fn fraction(&self, index: usize) -> i32 {
        let set = &self.sets[index];
        let (wanted, own) = (wanted(&self.deployment), size(set));
        if wanted == 0 {
            return -own;
        }
        let before = match revisions::most(set) {
            Some(most) if most != 0 => most,
            _ => self.deployment.status.replicas,
        };
        if before <= 0 {
            return 0;
        }
        let now = i128::from(wanted) + i128::from(max_surge(&self.deployment));
        let (product, before) = (i128::from(own) * now, i128::from(before));
        let scaled = (2 * product + before) / (2 * before);
        i32::try_from(scaled).unwrap_or(i32::MAX) - own
    }
}
