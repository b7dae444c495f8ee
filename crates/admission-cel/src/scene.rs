//! What an expression sees of a request.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use cel::kubernetes::{PER_CALL_LIMIT, authorizer};
use cel::{Activation, EvalError, Meter, Out, Value};

use crate::answers::Answers;
use crate::composition::{Composition, VARIABLES};
use crate::request::Request;

/// How many variables are computed within each other at most, as each needs its part of the stack. One that needs more has
/// all that it could need computed before it, instead of what it does need.
const LAZY_DEPTH: usize = 8;

/// What is the same for all expressions about a request.
#[derive(Clone)]
pub struct Facts<'a> {
    /// The new object; null where there is none.
    pub object: Value<'a>,
    /// The object as it was; null where there is none.
    pub old_object: Value<'a>,
    /// The request, of which only what is read is made a value.
    pub request: Request<'a>,
    /// The object's namespace; null where it has none.
    pub namespace: Value<'a>,
    /// Who may do what; nothing where expressions may not ask.
    pub answers: Option<Arc<Answers>>,
    /// Tells whether nobody waits any more.
    pub interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// What a policy's expressions see: the request, the policy's parameters, and its variables, each computed once.
pub struct Scene<'a> {
    facts: &'a Facts<'a>,
    /// Whether expressions may ask who may do what.
    asks: bool,
    params: Value<'a>,
    composition: Option<&'a Composition>,
    /// The values of the variables, once one is read.
    values: OnceCell<Box<[OnceCell<Out<Value<'a>>>]>>,
    /// Only variables before this place are seen.
    end: Cell<usize>,
    /// What variables cost that nobody has paid for yet.
    owed: Cell<u64>,
}

impl<'a> Scene<'a> {
    /// With the variables of a policy, if it has any, and parameters, or null.
    #[must_use]
    pub fn new(facts: &'a Facts<'a>, params: Value<'a>, composition: Option<&'a Composition>) -> Self {
        let end = Cell::new(composition.map_or(0, |composition| composition.variables().len()));
        Self { facts, asks: true, params, composition, values: OnceCell::new(), end, owed: Cell::default() }
    }

    /// The same where expressions may not ask who may do what, though they may name the authorizer.
    #[must_use]
    pub fn without_authorizer(self) -> Self {
        Self { asks: false, ..self }
    }

    /// What one evaluation may cost, and who may stop it.
    pub(crate) fn limits(&self) -> cel::Budget<'a> {
        let interrupted = self.facts.interrupted.map(|own| own as &dyn Fn() -> bool);
        cel::Budget { limit: Some(PER_CALL_LIMIT), interrupted }
    }

    /// Takes what variables cost since it was last taken.
    pub(crate) fn take_owed(&self) -> u64 {
        self.owed.take()
    }

    /// Where a variable's value is, once it is computed.
    fn cell(&self, composition: &'a Composition, place: usize) -> Option<&OnceCell<Out<Value<'a>>>> {
        let empty = || composition.variables().iter().map(|_| OnceCell::new()).collect();
        self.values.get_or_init(empty).get(place)
    }

    /// A variable's value, computed where it is not yet.
    fn variable(&self, composition: &'a Composition, place: usize) -> Out<Value<'a>> {
        if let Some(known) = self.cell(composition, place).and_then(OnceCell::get) {
            return known.clone();
        }
        let depth = composition.variables().get(place).map_or(0, |variable| variable.depth);
        if depth > LAZY_DEPTH {
            for needed in composition.needed_by(place) {
                // One that fails says so to whoever uses it.
                self.one(composition, needed).ok();
            }
        }
        self.one(composition, place)
    }

    fn one(&self, composition: &'a Composition, place: usize) -> Out<Value<'a>> {
        let (Some(cell), Some(variable)) = (self.cell(composition, place), composition.variables().get(place)) else {
            return Err(EvalError::NoSuchOverload);
        };
        if let Some(known) = cell.get() {
            return known.clone();
        }
        let failed = |why: &str, error: &dyn std::fmt::Display| {
            EvalError::Failed(format!("composited variable {:?} fails to {why}: {error}", variable.name))
        };
        let value = match &variable.program {
            Err(error) => Err(failed("compile", error)),
            Ok(program) => {
                let before = self.end.replace(place);
                let done = program.evaluate(self, self.limits());
                self.end.set(before);
                self.owed.set(self.owed.get().saturating_add(done.cost));
                done.result.map_err(|error| failed("evaluate", &error))
            }
        };
        cell.get_or_init(|| value).clone()
    }

    /// All variables in one value, for expressions that do not select one of them.
    fn all(&self, composition: &'a Composition) -> Out<Value<'a>> {
        let known = composition.variables().iter().take(self.end.get());
        let mut entries = std::collections::BTreeMap::new();
        for (place, variable) in known.enumerate() {
            let value = self.variable(composition, place).unwrap_or(Value::Null);
            entries.insert(variable.name.as_str(), value);
        }
        Value::map(entries.into_iter().map(|(name, value)| (Value::text(name), value)))
    }
}

impl<'a> Activation<'a> for Scene<'a> {
    fn resolve(&self, name: &str, meter: &mut Meter<'_>) -> Option<Out<Value<'a>>> {
        let asks = || {
            let answers = self.facts.answers.clone().filter(|_| self.asks);
            answers.map(|answers| answers as Arc<dyn authorizer::Authorizer>)
        };
        Some(Ok(match name {
            "object" => self.facts.object.clone(),
            "oldObject" => self.facts.old_object.clone(),
            "params" => self.params.clone(),
            "namespaceObject" => self.facts.namespace.clone(),
            "request" => Value::of_view(&self.facts.request),
            "authorizer" => authorizer::value(asks()?),
            "authorizer.requestResource" => authorizer::resource_value(asks()?, self.facts.request.question()),
            VARIABLES => return Some(self.all(self.composition?)),
            _ => {
                let name = name.strip_prefix("variables.")?;
                let composition = self.composition?;
                let place = composition.place(name, self.end.get())?;
                // The selection of the variable, of which the planner knows nothing.
                return Some(meter.charge(1).and_then(|()| self.variable(composition, place)));
            }
        }))
    }
}
