//! All levels: what configuration makes of them, and what they lend each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::object::Object as _;
use api_types::flowcontrol_v1::constants::{CATCH_ALL, EXEMPT, limit_response_type, priority_level_enablement};
use api_types::flowcontrol_v1::{FlowSchema, PriorityLevelConfiguration, PriorityLevelConfigurationSpec};

use crate::borrowing::{Claim, share_out};
use crate::classify::{Schema, Table};
use crate::level::{Level, LevelState};
use crate::limits::{Limits, Shares};
use crate::queues::{Kind, Queuing};
use crate::shuffle::Dealer;
use crate::{Caller, Moment, objects};

/// All levels of a server.
pub struct Controller<T> {
    server_seats: u32,
    levels: BTreeMap<String, Standing<T>>,
    fair_fraction: f64,
}

/// What a configuration comes to.
pub struct Configured<T> {
    /// How requests are classified from now on.
    pub table: Arc<Table<T>>,
    /// The schemas that there are, each with whether its level is there.
    pub found: Vec<(Arc<FlowSchema>, bool)>,
    /// Levels that cannot be understood, by name.
    pub broken: Vec<String>,
}

/// What came of sharing seats out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    /// Which part of its target each level got; nothing where seats stay as they were.
    pub fair_fraction: Option<f64>,
}

struct Standing<T> {
    state: LevelState<T>,
    kind: Kind,
    shares: Shares,
    uid: String,
}

/// A level's spec, understood.
struct Wanted {
    kind: Kind,
    shares: Shares,
    uid: String,
}

impl<T: Caller> Controller<T> {
    /// One for a server with some seats, that has only what must be there.
    #[must_use]
    pub fn new(now: Moment, server_seats: u32) -> (Self, Configured<T>) {
        let mut controller = Self { server_seats, levels: BTreeMap::new(), fair_fraction: 0.0 };
        let configured = controller.configure(now, &[], &[]);
        (controller, configured)
    }

    /// Takes over what there is now. Levels that are gone stay for as long as requests of them do, and take no new ones.
    pub fn configure(
        &mut self,
        now: Moment,
        levels: &[Arc<PriorityLevelConfiguration>],
        schemas: &[Arc<FlowSchema>],
    ) -> Configured<T> {
        let mut broken = Vec::new();
        let mut wanted = BTreeMap::new();
        for level in levels {
            match Wanted::of(level) {
                Some(own) => _ = wanted.insert(level.metadata.name.clone(), own),
                None => broken.push(level.metadata.name.clone()),
            }
        }
        for level in objects::mandatory_levels() {
            if let (false, Some(own)) = (wanted.contains_key(&level.metadata.name), Wanted::of(&level)) {
                wanted.insert(level.metadata.name.clone(), own);
            }
        }
        self.take_over(now, wanted);
        self.adjust(now);
        let (table, found) = self.table(schemas);
        Configured { table: Arc::new(table), found, broken }
    }

    fn take_over(&mut self, now: Moment, wanted: BTreeMap<String, Wanted>) {
        for standing in self.levels.values_mut() {
            standing.state.is_removed = !wanted.contains_key(standing.state.level.name());
        }
        self.levels.retain(|_, own| !own.state.is_removed || !own.state.level.queues().is_idle());
        let drained = self.levels.values().filter(|own| own.state.is_removed).map(|own| own.shares);
        let sum = wanted.values().map(|own| own.shares).chain(drained).map(|own| u64::from(own.shares)).sum();
        for (name, Wanted { kind, shares, uid }) in wanted {
            let limits = Limits::new(shares, sum, self.server_seats);
            let standing = self.levels.entry(name).or_insert_with_key(|name| {
                let level = Arc::new(Level::new(name, now, kind, limits.initial()));
                let current = limits.initial();
                let (target, statistics) = (0.0, Default::default());
                let state = LevelState { level, limits, current, target, is_removed: false, statistics };
                Standing { state, kind, shares, uid: String::new() }
            });
            (standing.kind, standing.shares, standing.uid) = (kind, shares, uid);
        }
        for standing in self.levels.values_mut() {
            let limits = Limits::new(standing.shares, sum, self.server_seats);
            standing.state.limits = limits;
            let widest = match standing.kind {
                // It has no seats of its own that a request could take a part of.
                Kind::Exempt => u32::MAX,
                Kind::Queue(queuing) => limits.widest_request(queuing.dealer.hand()),
                Kind::Reject => limits.widest_request(1),
            };
            standing.state.level.set_widest_request(widest);
            standing.state.level.queues().configure(now, standing.kind, limits.nominal);
        }
    }

    /// The schemas whose levels are there, in order; and for each object whether it is one of them.
    fn table(&self, schemas: &[Arc<FlowSchema>]) -> (Table<T>, Vec<(Arc<FlowSchema>, bool)>) {
        let found = schemas.iter().map(|schema| (Arc::clone(schema), self.schema(schema).is_some())).collect();
        let mut sorted: Vec<&Arc<FlowSchema>> = schemas.iter().collect();
        sorted.sort_by_key(|schema| (schema.spec.matching_precedence, schema.metadata.name.clone()));
        let [exempt, catch_all] = [EXEMPT, CATCH_ALL].map(|name| {
            let is_there = schemas.iter().any(|schema| schema.metadata.name == name);
            objects::mandatory_schemas().into_iter().find(|own| !is_there && own.metadata.name == name).map(Arc::new)
        });
        let all = exempt.iter().chain(sorted).chain(catch_all.iter());
        (Table { schemas: all.filter_map(|schema| self.schema(schema)).map(Arc::new).collect() }, found)
    }

    fn schema(&self, object: &Arc<FlowSchema>) -> Option<Schema<T>> {
        let standing = self.levels.get(&object.spec.priority_level_configuration.name)?;
        let shuffles = matches!(standing.kind, Kind::Queue(queuing) if queuing.dealer.deck() > 1);
        (!standing.state.is_removed).then(|| Schema {
            name: object.meta().name.as_str().into(),
            uid: object.meta().uid.clone(),
            level: Arc::clone(&standing.state.level),
            level_uid: standing.uid.clone(),
            shuffles,
            object: Arc::clone(object),
        })
    }

    /// Looks at what each level needed since it did so last, and shares the seats out anew.
    pub fn adjust(&mut self, now: Moment) -> Adjustment {
        self.levels.retain(|_, own| !own.state.is_removed || !own.state.level.queues().is_idle());
        let mut claims = Vec::new();
        for Standing { state, kind, .. } in self.levels.values_mut() {
            state.statistics = state.level.queues().take_demand(now, state.statistics);
            let (highest, smoothed) = (state.statistics.highest, state.statistics.smoothed);
            let claim = Claim { is_exempt: *kind == Kind::Exempt, limits: state.limits, highest, smoothed };
            state.target = claim.target();
            claims.push(claim);
        }
        let shared = share_out(&claims);
        for (standing, seats) in self.levels.values_mut().zip(shared.iter().flat_map(|shared| &shared.seats)) {
            standing.state.current = *seats;
            standing.state.level.queues().set_limit(now, *seats);
        }
        let fair_fraction = shared.map(|shared| shared.fair_fraction);
        self.fair_fraction = fair_fraction.unwrap_or(self.fair_fraction);
        Adjustment { fair_fraction }
    }

    /// Which part of its target each level got when seats were shared out last.
    #[must_use]
    pub fn fair_fraction(&self) -> f64 {
        self.fair_fraction
    }

    /// How each level stands, by name.
    pub fn states(&self) -> impl Iterator<Item = &LevelState<T>> {
        self.levels.values().map(|standing| &standing.state)
    }
}

impl Wanted {
    /// Nothing where the spec says nothing that can be done.
    fn of(level: &PriorityLevelConfiguration) -> Option<Self> {
        let kind = kind_of(&level.metadata.name, &level.spec)?;
        Some(Self { kind, shares: Shares::of(&level.spec), uid: level.metadata.uid.clone() })
    }
}

fn kind_of(name: &str, spec: &PriorityLevelConfigurationSpec) -> Option<Kind> {
    match (spec.type_.as_str(), &spec.limited) {
        (priority_level_enablement::EXEMPT, None) if name == EXEMPT => Some(Kind::Exempt),
        (priority_level_enablement::LIMITED, Some(limited)) if name != EXEMPT => {
            match (limited.limit_response.type_.as_str(), &limited.limit_response.queuing) {
                (limit_response_type::REJECT, _) => Some(Kind::Reject),
                (limit_response_type::QUEUE, Some(own)) => {
                    let number = |value: i32| usize::try_from(value).ok().filter(|value| *value > 0);
                    let dealer = Dealer::new(number(own.queues)?, number(own.hand_size)?)?;
                    Some(Kind::Queue(Queuing { dealer, length_limit: number(own.queue_length_limit)? }))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
