//! Types of all nodes, and what names stand for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Expr, ExprId, FieldInit, Kind, Literal, Name};
use crate::environment::{Environment, OverloadDecl};
use crate::issue::{Issue, Issues};
use crate::parser::Parsed;
use crate::types::Type;
use crate::value::Value;

mod literals;
mod unify;

use unify::Unifier;

/// What a node refers to.
#[derive(Debug, Clone)]
pub(crate) enum Reference {
    Variable(Name),
    Constant(Value<'static>),
    /// The function by its full name, without a receiver that only was its namespace, and the overloads that may be meant.
    Function {
        qualified: bool,
        overloads: Vec<Arc<OverloadDecl>>,
    },
    Struct(Name),
}

/// A tree that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) parsed: Parsed,
    types: Vec<Type>,
    references: HashMap<ExprId, Reference>,
    /// Whether types are known, not only names.
    pub(crate) typed: bool,
}

impl Checked {
    pub(crate) fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    pub(crate) fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(&id)
    }

    /// Whether a node reads the variable.
    pub(crate) fn reads(&self, variable: &str) -> bool {
        self.variables().any(|name| name == variable)
    }

    /// The variables that nodes read.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.references.values().filter_map(|reference| match reference {
            Reference::Variable(name) => Some(&**name),
            _ => None,
        })
    }
}

pub(crate) fn check(env: &Environment, parsed: Parsed) -> Result<Checked, Issues> {
    let (mut checked, mut issues) = run(env, parsed, false);
    if issues.is_empty() && env.checks_literals() {
        literals::check(&checked, &mut issues);
    }
    checked.typed = true;
    if issues.is_empty() { Ok(checked) } else { Err(Issues::new(&checked.parsed.source, issues)) }
}

/// Only looks up names; nothing is wrong before it is evaluated.
pub(crate) fn resolve_only(env: &Environment, parsed: Parsed) -> Checked {
    run(env, parsed, true).0
}

fn run(env: &Environment, parsed: Parsed, lenient: bool) -> (Checked, Vec<Issue>) {
    let mut checker = Checker {
        env,
        lenient,
        scopes: Vec::new(),
        unifier: Unifier::default(),
        types: vec![Type::Dyn; parsed.offsets.len()],
        references: HashMap::new(),
        issues: Vec::new(),
        parsed: &parsed,
    };
    checker.expr(&parsed.expr);
    let Checker { unifier, types, references, issues, .. } = checker;
    let types = types.iter().map(|ty| unifier.finish(ty)).collect();
    (Checked { parsed, types, references, typed: false }, issues)
}

struct Checker<'e> {
    env: &'e Environment,
    lenient: bool,
    scopes: Vec<(Name, Type)>,
    unifier: Unifier,
    types: Vec<Type>,
    references: HashMap<ExprId, Reference>,
    issues: Vec<Issue>,
    parsed: &'e Parsed,
}

impl Checker<'_> {
    fn fail(&mut self, id: ExprId, message: String) -> Type {
        if !self.lenient {
            self.issues.push(Issue { offset: self.parsed.offset(id), message });
        }
        Type::Error
    }

    fn expr(&mut self, expr: &Expr) -> Type {
        let ty = match &expr.kind {
            Kind::Literal(literal) => Value::of_literal(literal).type_of(),
            Kind::Ident(name) => self.ident(expr.id, name),
            Kind::Select { operand, field, test_only } => self.select(expr, operand, field, *test_only),
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { elements } => {
                let mut item = None;
                for element in elements {
                    let ty = self.expr(&element.value);
                    let ty = self.unwrap_optional(element.value.id, ty, element.optional);
                    item = Some(self.join(element.value.id, item, ty));
                }
                Type::list(item.unwrap_or_else(|| self.unifier.fresh()))
            }
            Kind::Map { entries } => {
                let (mut key, mut value) = (None, None);
                for entry in entries {
                    let ty = self.expr(&entry.key);
                    key = Some(self.join(entry.key.id, key, ty));
                    let ty = self.expr(&entry.value);
                    let ty = self.unwrap_optional(entry.value.id, ty, entry.optional);
                    value = Some(self.join(entry.value.id, value, ty));
                }
                let mut or_fresh = |ty: Option<Type>| ty.unwrap_or_else(|| self.unifier.fresh());
                Type::map(or_fresh(key), or_fresh(value))
            }
            Kind::Struct { name, fields } => self.structure(expr.id, name, fields),
            Kind::Comprehension(fold) => self.fold(fold),
        };
        if let Some(slot) = self.types.get_mut(expr.id as usize) {
            *slot = ty.clone();
        }
        ty
    }

    fn is_local(&self, name: &str) -> Option<&Type> {
        self.scopes.iter().rev().find(|(found, _)| &**found == name).map(|(_, ty)| ty)
    }

    /// What a name stands for, if anything, and its type.
    fn lookup(&mut self, id: ExprId, name: &str) -> Option<Type> {
        for candidate in self.env.candidates(name) {
            if let Some((name, ty)) = self.env.variable(&candidate) {
                self.references.insert(id, Reference::Variable(Name::clone(name)));
                return Some(if self.lenient { Type::Dyn } else { ty.clone() });
            }
            if let Some(value) = self.env.constant(&candidate) {
                let ty = match &value {
                    Value::Type(ty) => Type::type_of(ty.clone()),
                    value => value.type_of(),
                };
                self.references.insert(id, Reference::Constant(value));
                return Some(ty);
            }
        }
        None
    }

    fn undeclared(&mut self, id: ExprId, name: &str) -> Type {
        let message = format!("undeclared reference to '{name}' (in container '{}')", self.env.container());
        self.fail(id, message)
    }

    fn ident(&mut self, id: ExprId, name: &str) -> Type {
        if let Some(ty) = self.is_local(name) {
            return ty.clone();
        }
        match self.lookup(id, name) {
            Some(ty) => ty,
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &Name, test_only: bool) -> Type {
        if !test_only
            && let Some(name) = expr.as_qualified_name()
            && self.is_local(name.split('.').next().unwrap_or_default()).is_none()
            && let Some(ty) = self.lookup(expr.id, &name)
        {
            return ty;
        }
        let target = self.expr(operand);
        let ty = self.field(expr.id, &target, field, false);
        if test_only { Type::Bool } else { ty }
    }

    /// The type of a field of a value of a type.
    fn field(&mut self, id: ExprId, target: &Type, field: &str, optional: bool) -> Type {
        let target = self.unifier.resolve(target);
        let (inner, optional) = match target.as_optional() {
            Some(inner) => (self.unifier.resolve(inner), true),
            None => (target.clone(), optional),
        };
        let ty = match &inner {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(name) => match self.env.field(name, field) {
                Some(ty) => ty,
                None => self.fail(id, format!("undefined field '{field}'")),
            },
            Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, &inner);
                Type::Dyn
            }
            ty if ty.is_dyn() => Type::Dyn,
            ty => {
                let message = format!("type '{}' does not support field selection", self.unifier.finish(ty));
                self.fail(id, message)
            }
        };
        if optional { Type::optional(ty) } else { ty }
    }

    fn call(&mut self, expr: &Expr, function: &Name, target: Option<&Expr>, args: &[Expr]) -> Type {
        if &**function == "_?._" {
            return self.optional_select(expr, args);
        }
        if let Some(target) = target {
            let local = target.as_qualified_name();
            let local = local.as_deref().and_then(|name| self.is_local(name.split('.').next().unwrap_or_default()));
            if local.is_none()
                && let Some(name) = self.env.qualified_function(target, function)
            {
                let types = args.iter().map(|arg| self.expr(arg)).collect();
                return self.overload(expr.id, &name, false, types, true);
            }
            let mut types = vec![self.expr(target)];
            types.extend(args.iter().map(|arg| self.expr(arg)));
            if !self.env.overloads(function).is_empty() {
                return self.overload(expr.id, function, true, types, false);
            }
            return self.undeclared(expr.id, function);
        }
        let types = args.iter().map(|arg| self.expr(arg)).collect();
        match self.env.function_name(function) {
            Some(name) => self.overload(expr.id, &name, false, types, false),
            None => self.undeclared(expr.id, function),
        }
    }

    fn optional_select(&mut self, expr: &Expr, args: &[Expr]) -> Type {
        let [operand, field] = args else { return Type::Error };
        let Kind::Literal(Literal::String(field)) = &field.kind else {
            return self.fail(expr.id, "unsupported optional field selection".to_owned());
        };
        let target = self.expr(operand);
        self.field(expr.id, &target, field, true)
    }

    /// The overloads that the arguments may be meant for, and the type that comes of it.
    fn overload(&mut self, id: ExprId, name: &str, member: bool, args: Vec<Type>, qualified: bool) -> Type {
        let mut found = Vec::new();
        let mut result: Option<Type> = None;
        for decl in self.env.overloads(name) {
            let signature = &decl.signature;
            if signature.member != member || signature.params.len() != args.len() {
                continue;
            }
            if self.lenient {
                found.push(Arc::clone(decl));
                continue;
            }
            let mut fresh = HashMap::new();
            let params: Vec<Type> = signature.params.iter().map(|ty| self.unifier.instance(ty, &mut fresh)).collect();
            if !self.unifier.all_assignable(&args, &params) {
                continue;
            }
            let ty = self.unifier.instance(&signature.result, &mut fresh);
            let ty = self.unifier.apply(&ty);
            result = Some(match result {
                Some(before) if before != ty => Type::Dyn,
                _ => ty,
            });
            found.push(Arc::clone(decl));
        }
        if found.is_empty() && !self.lenient {
            let signature = printed(&self.unifier, &args, member);
            return self.fail(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        }
        self.references.insert(id, Reference::Function { qualified, overloads: found });
        result.unwrap_or(Type::Dyn)
    }

    fn unwrap_optional(&mut self, id: ExprId, ty: Type, optional: bool) -> Type {
        if !optional {
            return ty;
        }
        let resolved = self.unifier.resolve(&ty);
        match resolved.as_optional() {
            Some(inner) => inner.clone(),
            None if resolved.is_dyn() => Type::Dyn,
            None => {
                let message = format!("expected type 'optional_type(dyn)' but found '{}'", self.unifier.finish(&ty));
                self.fail(id, message)
            }
        }
    }

    /// The type of elements so far and one more.
    fn join(&mut self, id: ExprId, before: Option<Type>, ty: Type) -> Type {
        let Some(before) = before else { return ty };
        if self.unifier.assignable(&before, &ty) {
            return self.unifier.more_general(before, ty);
        }
        if self.unifier.assignable(&ty, &before) {
            return self.unifier.more_general(before, ty);
        }
        if self.env.is_homogeneous() {
            let (wanted, found) = (self.unifier.finish(&before), self.unifier.finish(&ty));
            self.fail(id, format!("expected type '{wanted}' but found '{found}'"));
        }
        Type::Dyn
    }

    fn structure(&mut self, id: ExprId, name: &str, fields: &[FieldInit]) -> Type {
        let candidates = self.env.candidates(name);
        let Some(name) = candidates.into_iter().find(|name| self.env.has_struct(name)) else {
            for field in fields {
                self.expr(&field.value);
            }
            return self.undeclared(id, name);
        };
        self.references.insert(id, Reference::Struct(name.as_str().into()));
        for field in fields {
            let ty = self.expr(&field.value);
            let ty = self.unwrap_optional(field.value.id, ty, field.optional);
            match self.env.field(&name, &field.name) {
                None => {
                    self.fail(field.id, format!("undefined field '{}'", field.name));
                }
                Some(wanted) => {
                    if !self.unifier.assignable(&ty, &wanted) {
                        let found = self.unifier.finish(&ty);
                        let message = format!(
                            "expected type of field '{}' is '{wanted}' but provided type is '{found}'",
                            field.name
                        );
                        self.fail(field.id, message);
                    }
                }
            }
        }
        Type::object(&name)
    }

    fn fold(&mut self, fold: &Comprehension) -> Type {
        let range = self.expr(&fold.iter_range);
        let accu = self.expr(&fold.accu_init);
        let range = self.unifier.resolve(&range);
        let (first, second) = match &range {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            ty if ty.is_dyn() => (Type::Dyn, Type::Dyn),
            ty => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    self.unifier.finish(ty)
                );
                self.fail(fold.iter_range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scopes.len();
        self.scopes.push((Name::clone(&fold.accu_var), accu.clone()));
        let single = if matches!(range, Type::List(_)) { second.clone() } else { first.clone() };
        match &fold.iter_var2 {
            Some(name) => {
                self.scopes.push((Name::clone(&fold.iter_var), first));
                self.scopes.push((Name::clone(name), second));
            }
            None => self.scopes.push((Name::clone(&fold.iter_var), single)),
        }
        let condition = self.expr(&fold.loop_condition);
        self.expect(fold.loop_condition.id, &condition, &Type::Bool);
        let step = self.expr(&fold.loop_step);
        self.expect(fold.loop_step.id, &step, &accu);
        self.scopes.truncate(depth + 1);
        let result = self.expr(&fold.result);
        self.scopes.truncate(depth);
        result
    }

    fn expect(&mut self, id: ExprId, found: &Type, wanted: &Type) {
        if !self.unifier.assignable(found, wanted) {
            let (wanted, found) = (self.unifier.finish(wanted), self.unifier.finish(found));
            self.fail(id, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}

/// `(int, string)`, or `string.(int)` for a method.
fn printed(unifier: &Unifier, args: &[Type], member: bool) -> String {
    let mut texts = args.iter().map(|ty| unifier.finish(ty).to_string());
    let receiver = if member { texts.next() } else { None };
    let list = texts.collect::<Vec<_>>().join(", ");
    receiver.map_or_else(|| format!("({list})"), |receiver| format!("{receiver}.({list})"))
}
