//! Evaluating rules on an object: the rules of a node first, then those of the nodes below. Some failures end it all.

use api_machinery::field_path::{BadValue, ErrorKind, ErrorList, FieldError, Path};
use cel::kubernetes::PER_CALL_LIMIT;
use cel::kubernetes::declared::Declared;
use cel::{Activation, Budget, EvalError, Meter, Out, Program, Value as CelValue};
use schema::structural::MAX_ERRORS;
use serde_json::Value;

use crate::compile::{OLD_SELF, SELF};
use crate::correlate::{Correlated, OldItems};
use crate::tree::{Node, Programs, Rule, Subject};

/// The longest message that an expression may make.
const MAX_MESSAGE_BYTES: usize = 5120;

/// What came of it.
#[derive(Default)]
pub struct Findings {
    /// What refuses the object.
    pub errors: ErrorList,
    /// What was no better before, as texts for the client.
    pub warnings: Vec<String>,
}

/// No rule is evaluated any more.
struct Stop;

type Step = Result<(), Stop>;

/// An evaluation of all rules on an object.
pub(crate) struct Evaluation<'b> {
    budget: &'b mut u64,
    pub(crate) findings: Findings,
}

/// A value at a place, with what was there before.
#[derive(Clone, Copy)]
struct Instance<'v, 'c> {
    value: &'v Value,
    old: Option<&'v Value>,
    /// The nearest value around this one, or this one, of which is known what it was before.
    correlated: Option<&'c Correlated<'v>>,
    ratchets: bool,
}

impl<'v, 'c> Instance<'v, 'c> {
    /// A value within, which was `old` before.
    fn below<'n>(
        self,
        value: &'v Value,
        old: Option<&'v Value>,
        own: &'n mut Option<Correlated<'v>>,
    ) -> Instance<'v, 'n>
    where
        'c: 'n,
    {
        *own = old.filter(|_| self.ratchets).map(|old| Correlated::new(value, old));
        let correlated = own.as_ref().or(self.correlated);
        Instance { value, old, correlated, ratchets: self.ratchets }
    }

    fn is_unchanged(&self) -> bool {
        self.correlated.is_some_and(Correlated::is_unchanged)
    }
}

/// The variables of a rule.
struct Scope<'v> {
    this: CelValue<'v>,
    old: Option<CelValue<'v>>,
}

impl<'v> Activation<'v> for Scope<'v> {
    fn resolve(&self, name: &str, _: &mut Meter<'_>) -> Option<Out<CelValue<'v>>> {
        match name {
            SELF => Some(Ok(self.this.clone())),
            OLD_SELF => self.old.clone().map(Ok),
            _ => None,
        }
    }
}

impl<'v> Scope<'v> {
    fn new(declared: &'v Declared, instance: Instance<'v, '_>, rule: &Rule) -> Self {
        let old = instance.old.map(|old| declared.value(old));
        let old = match rule.stated.optional_old_self {
            Some(true) => Some(old.map_or(CelValue::Optional(None), CelValue::some)),
            _ => old,
        };
        Self { this: declared.value(instance.value), old }
    }
}

impl<'b> Evaluation<'b> {
    pub(crate) fn new(budget: &'b mut u64) -> Self {
        Self { budget, findings: Findings::default() }
    }

    pub(crate) fn start(&mut self, at: &Path, root: &Node, subject: Subject<'_>) {
        let instance = Instance { value: subject.value, old: None, correlated: None, ratchets: subject.ratchets };
        let mut own = None;
        let instance = instance.below(subject.value, subject.old, &mut own);
        // Whoever stops has said why.
        let _ = self.node(at, root, instance);
    }

    fn node(&mut self, at: &Path, node: &Node, mut instance: Instance<'_, '_>) -> Step {
        instance.old = instance.old.filter(|old| !old.is_null());
        match instance.value {
            Value::Null => Ok(()),
            Value::Array(items) => {
                self.rules(at, node, instance)?;
                self.items(at, node, items, instance)
            }
            Value::Object(map) => {
                self.rules(at, node, instance)?;
                self.members(at, node, map, instance)
            }
            _ => self.rules(at, node, instance),
        }
    }

    fn items<'v>(&mut self, at: &Path, node: &Node, items: &'v [Value], instance: Instance<'v, '_>) -> Step {
        let Some(below) = &node.items else { return Ok(()) };
        let old = OldItems::of(instance.old, &node.keys);
        for (index, item) in items.iter().enumerate() {
            let mut own = None;
            self.node(&at.index(index), below, instance.below(item, old.get(item), &mut own))?;
        }
        Ok(())
    }

    fn members<'v>(
        &mut self,
        at: &Path,
        node: &Node,
        map: &'v serde_json::Map<String, Value>,
        instance: Instance<'v, '_>,
    ) -> Step {
        let old = |name: &str| instance.old.and_then(|old| old.get(name));
        if let Some(below) = &node.entries {
            for (key, value) in map {
                let mut own = None;
                self.node(&at.key(key), below, instance.below(value, old(key), &mut own))?;
            }
        }
        for (name, below) in &node.properties {
            let Some(value) = map.get(name) else { continue };
            let mut own = None;
            self.node(&at.child(name.clone()), below, instance.below(value, old(name), &mut own))?;
        }
        Ok(())
    }

    fn rules(&mut self, at: &Path, node: &Node, instance: Instance<'_, '_>) -> Step {
        for rule in &node.rules {
            if self.findings.errors.len() >= MAX_ERRORS {
                return Err(Stop);
            }
            match (&rule.compiled, &node.declared) {
                (Ok(programs), Some(declared)) => {
                    let needs_old = programs.uses_old_self && rule.stated.optional_old_self != Some(true);
                    if !needs_old || instance.old.is_some() {
                        let scope = Scope::new(declared, instance, rule);
                        self.rule(&Looked { at, node, rule, programs, instance, scope: &scope })?;
                    }
                }
                (Err(problem), _) => self.refuse(at, node, format!("rule compile error: {problem}")),
                (Ok(_), None) => {}
            }
        }
        Ok(())
    }

    fn rule(&mut self, looked: &Looked<'_, '_>) -> Step {
        let (at, node, shown) = (looked.at, looked.node, looked.rule.stated.shown());
        let done = looked.programs.rule.evaluate(looked.scope, Budget::of(PER_CALL_LIMIT));
        if !self.charge(done.cost) {
            let text = "validation failed due to running out of cost budget, no further validation rules will be run";
            self.refuse(at, node, text.into());
            return Err(Stop);
        }
        match done.result {
            Ok(CelValue::Bool(true)) => {}
            Err(error @ EvalError::CostLimit) => {
                let text = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.refuse(at, node, text);
                return Err(Stop);
            }
            Err(EvalError::NoSuchOverload) => {
                let error = EvalError::NoSuchOverload;
                let text = format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: \
                     {shown}"
                );
                self.refuse(at, node, text);
            }
            Err(error) => self.refuse(at, node, format!("{error} evaluating rule: {shown}")),
            Ok(_) => return self.failed(looked),
        }
        Ok(())
    }

    /// A rule that does not hold.
    fn failed(&mut self, looked: &Looked<'_, '_>) -> Step {
        let at = match &looked.rule.about {
            Some(about) => looked.at.child(about.clone()),
            None => looked.at.clone(),
        };
        let made = looked.programs.message.as_ref().map(|program| self.message(program, looked));
        let (error, step) = match made {
            Some(Err(text)) => (at.invalid(looked.node.kind.as_str(), text), Err(Stop)),
            Some(Ok(Some(text))) => (looked.error(&at, text), Ok(())),
            Some(Ok(None)) | None => (looked.error(&at, looked.default_message()), Ok(())),
        };
        if !looked.programs.uses_old_self && looked.instance.is_unchanged() {
            self.findings.warnings.push(error.to_string());
        } else {
            self.findings.errors.push(error);
        }
        step
    }

    /// The message that an expression makes; nothing where it makes none that can be used.
    fn message(&mut self, program: &Program, looked: &Looked<'_, '_>) -> Result<Option<String>, String> {
        const NO_FURTHER: &str = "no further validation rules will be run";
        let done = program.evaluate(looked.scope, Budget::of(PER_CALL_LIMIT));
        if !self.charge(done.cost) {
            return Err(format!("messageExpression evaluation failed due to running out of cost budget, {NO_FURTHER}"));
        }
        let text = match &done.result {
            Err(EvalError::CostLimit) => {
                let source = api_machinery::quote::go_quote(&looked.rule.stated.message_expression);
                return Err(format!("{NO_FURTHER} due to call cost exceeds limit for messageExpression: {source}"));
            }
            Ok(value) => value.as_str().map(str::trim),
            Err(_) => None,
        };
        let fits = |text: &&str| !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains(['\n', '\r']);
        Ok(text.filter(fits).map(ToOwned::to_owned))
    }

    fn charge(&mut self, cost: u64) -> bool {
        match self.budget.checked_sub(cost) {
            Some(left) => {
                *self.budget = left;
                true
            }
            None => false,
        }
    }

    fn refuse(&mut self, at: &Path, node: &Node, text: String) {
        self.findings.errors.push(at.invalid(node.kind.as_str(), text));
    }
}

/// A rule at a place.
struct Looked<'n, 'v> {
    at: &'n Path,
    node: &'n Node,
    rule: &'n Rule,
    programs: &'n Programs,
    instance: Instance<'v, 'n>,
    scope: &'n Scope<'v>,
}

impl Looked<'_, '_> {
    fn default_message(&self) -> String {
        let stated = &self.rule.stated;
        if stated.message.is_empty() { format!("failed rule: {}", stated.shown()) } else { stated.shown().to_owned() }
    }

    /// The error of the rule's reason. Objects and lists are not printed.
    fn error(&self, at: &Path, text: String) -> FieldError {
        let value = match (self.node.kind.as_str(), self.instance.value) {
            ("object" | "array", _) => None,
            (_, Value::String(text)) => Some(BadValue::from(text)),
            (_, other) => Some(BadValue::json(other.to_string())),
        };
        match self.rule.stated.reason.as_deref() {
            Some("FieldValueForbidden") => at.forbidden(text),
            Some("FieldValueRequired") => at.required(text),
            // Upstream's error for a repeated value has no room for a text.
            Some("FieldValueDuplicate") => {
                FieldError { kind: ErrorKind::Duplicate, field: at.to_string(), value, detail: String::new() }
            }
            _ => FieldError { kind: ErrorKind::Invalid, field: at.to_string(), value, detail: text },
        }
    }
}
