//! Whether a type may stand where another is wanted, and what that tells of type parameters.

use std::collections::HashMap;

use crate::ast::Name;
use crate::types::Type;

/// What is known of type parameters so far.
#[derive(Debug, Default, Clone)]
pub(super) struct Unifier {
    bound: HashMap<Name, Type>,
    count: usize,
}

/// How many parameters may stand for one another in a row.
const MAX_CHAIN: usize = 64;

impl Unifier {
    /// A new parameter of which nothing is known.
    pub(super) fn fresh(&mut self) -> Type {
        self.count += 1;
        Type::Param(format!("_var{}", self.count).into())
    }

    /// A declared type with parameters of its own.
    pub(super) fn instance(&mut self, ty: &Type, fresh: &mut HashMap<Name, Type>) -> Type {
        match ty {
            Type::Param(name) => match fresh.get(name) {
                Some(ty) => ty.clone(),
                None => {
                    let ty = self.fresh();
                    fresh.insert(Name::clone(name), ty.clone());
                    ty
                }
            },
            ty => ty.with(&mut |part| self.instance(part, fresh)),
        }
    }

    /// What a parameter stands for, as far as known; parts are left as they are.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        let mut ty = ty;
        for _ in 0..MAX_CHAIN {
            match ty {
                Type::Param(name) => match self.bound.get(name) {
                    Some(next) => ty = next,
                    None => break,
                },
                _ => break,
            }
        }
        ty.clone()
    }

    /// The type with all that is known put in.
    pub(super) fn apply(&self, ty: &Type) -> Type {
        self.resolve(ty).with(&mut |part| self.apply(part))
    }

    /// The same with `dyn` for what is not known.
    pub(super) fn finish(&self, ty: &Type) -> Type {
        match self.resolve(ty) {
            Type::Param(_) => Type::Dyn,
            ty => ty.with(&mut |part| self.finish(part)),
        }
    }

    pub(super) fn all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        let before = self.bound.clone();
        let fits = from.iter().zip(to).all(|(from, to)| self.unify(from, to));
        if !fits {
            self.bound = before;
        }
        fits
    }

    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.all_assignable(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn unify(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Param(name) = to {
            return self.bind(name, from, true);
        }
        if let Type::Param(name) = from {
            return self.bind(name, to, false);
        }
        if from.is_dyn() || to.is_dyn() {
            return true;
        }
        match (from, to) {
            (Type::Null, to) => takes_null(to),
            (from, Type::Null) => takes_null(from),
            (Type::Nullable(a), Type::Nullable(b)) => self.unify(a, b),
            (Type::Nullable(a), b) | (b, Type::Nullable(a)) => self.unify(&b.clone(), a),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.unify(a, b),
            (Type::Map(a), Type::Map(b)) => self.unify(&a.0, &b.0) && self.unify(&a.1, &b.1),
            (Type::Opaque(a, from), Type::Opaque(b, to)) => {
                a == b && from.len() == to.len() && from.iter().zip(to.iter()).all(|(from, to)| self.unify(from, to))
            }
            (from, to) => from == to,
        }
    }

    /// Holds a parameter against a type; `from` tells that the type is what stands for it.
    fn bind(&mut self, name: &Name, ty: &Type, from: bool) -> bool {
        let ty = self.resolve(ty);
        match self.resolve(&Type::Param(Name::clone(name))) {
            Type::Param(root) => {
                if ty != Type::Param(Name::clone(&root)) {
                    if self.occurs(&root, &ty) {
                        return false;
                    }
                    self.bound.insert(root, ty);
                }
                true
            }
            known => {
                let fits = if from { self.unify(&ty, &known) } else { self.unify(&known, &ty) };
                if fits && self.less_specific(&ty, &known) && !matches!(ty, Type::Param(_)) && !self.occurs(name, &ty) {
                    self.bound.insert(Name::clone(name), ty);
                }
                fits
            }
        }
    }

    fn occurs(&self, name: &Name, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Param(found) => found == *name,
            ty => ty.params().into_iter().any(|part| self.occurs(name, part)),
        }
    }

    /// Whether the first says less than the second, or the same.
    fn less_specific(&self, one: &Type, other: &Type) -> bool {
        let (one, other) = (self.resolve(one), self.resolve(other));
        match (&one, &other) {
            (one, _) if one.is_dyn() => true,
            (_, other) if other.is_dyn() => false,
            (Type::Param(_), _) => true,
            (_, Type::Param(_)) => false,
            (Type::Nullable(a), Type::Nullable(b)) => a == b,
            (Type::Nullable(_), _) => true,
            (one, Type::Null) if takes_null(one) => true,
            (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) | (Type::Opaque(..), Type::Opaque(..)) => {
                let (one, other) = (one.params(), other.params());
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.less_specific(one, other))
            }
            (one, other) => one == other,
        }
    }

    pub(super) fn more_general(&self, one: Type, other: Type) -> Type {
        if self.less_specific(&one, &other) { one } else { other }
    }
}

fn takes_null(ty: &Type) -> bool {
    matches!(ty, Type::Null | Type::Nullable(_) | Type::Object(_) | Type::Opaque(..) | Type::Timestamp | Type::Duration)
}
