//! What a caller must know of a routine: its name, parameters and result.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::{Catalog, ast};

use super::place::{Named, Place, RowPlace, Types};
use crate::datum::Datum;
use crate::define::{
    Definition, Explanation, INVALID_FUNCTION_DEFINITION, Mode, Removal, Returns, RoutineKind,
    RoutineReference, Volatility,
};
use crate::expr;
use crate::parse::ast::{Span, TypeName};
use crate::types::Type;

/// A routine as its callers see it.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its name, in lower case unless quoted.
    pub name: String,
    /// Function or procedure.
    pub kind: RoutineKind,
    /// Its parameters, in order; those of RETURNS TABLE are not among them.
    pub parameters: Vec<Formal>,
    /// What it gives back.
    pub result: ResultShape,
    /// Whether NULL arguments give NULL without running it.
    pub strict: bool,
    /// What it promises.
    pub volatility: Volatility,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Formal {
    /// Its name, or nothing.
    pub name: String,
    /// Its way.
    pub mode: Mode,
    /// What it holds.
    pub place: Place,
    /// Its value if the caller gives none.
    pub default: Option<Arc<Default>>,
}

/// A parameter's default.
#[derive(Clone, Debug)]
pub struct Default {
    /// The expression.
    pub tree: ast::Expr,
    /// The statement it is from, in which its places count.
    pub text: String,
}

/// What a routine gives back.
#[derive(Clone, Debug)]
pub struct ResultShape {
    /// Nothing, a value, or a row.
    pub place: Place,
    /// Whether there may be any number of it.
    pub setof: bool,
    /// Names and types of the columns of the result: one for a value, none for nothing.
    pub columns: Vec<(String, Place)>,
    /// Whether the columns are variables of the routine: OUT parameters or those of RETURNS TABLE.
    pub from_variables: bool,
}

impl Signature {
    /// The signature that a definition gives.
    ///
    /// # Errors
    /// 42704 for a type that does not exist, 42P13 where parameters and RETURNS contradict each other,
    /// 0A000; with position.
    pub fn new(catalog: &Catalog, definition: &Definition) -> Result<Self, SqlError> {
        let types = Types { catalog, text: &definition.text };
        let mut parameters = Vec::new();
        for parameter in &definition.parameters {
            let place = place_of(&types, &parameter.ty)?;
            let default = parameter.default.as_ref().map(|default| {
                Arc::new(Default { tree: (*default.tree).clone(), text: definition.text.clone() })
            });
            let name = parameter.name.as_ref().map_or_else(String::new, |name| name.text.clone());
            if place == Place::Void {
                let message = "PL/pgSQL functions cannot accept type void";
                return Err(invalid(&types, parameter.ty.span, message));
            }
            parameters.push(Formal { name, mode: parameter.mode, place, default });
        }
        let result = ResultShape::new(&types, definition, &parameters)?;
        Ok(Self {
            name: definition.name.name.text.clone(),
            kind: definition.kind,
            parameters,
            result,
            strict: definition.strict,
            volatility: definition.volatility,
        })
    }

    /// The parameters that the caller gives values for, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Formal> {
        self.parameters.iter().filter(|parameter| parameter.mode.is_in())
    }

    /// Whether a call without a schema never means it, as a built-in function has its name and types.
    pub fn is_hidden(&self) -> bool {
        self.kind == RoutineKind::Function && expr::has_builtin(&self.name, &self.key())
    }

    /// The types that tell it from others of its name.
    pub fn key(&self) -> Vec<Type> {
        self.inputs().map(|parameter| simplified(parameter.place.ty())).collect()
    }

    /// Its name with the types of what it takes, as PostgreSQL writes it.
    pub fn shown(&self) -> String {
        let types: Vec<String> = self.inputs().map(|parameter| parameter.place.ty().to_string()).collect();
        format!("{}({})", self.name, types.join(", "))
    }

    /// Whether `newer` may replace it by CREATE OR REPLACE.
    ///
    /// # Errors
    /// 42809 for another kind, 42P13 for another result or other names of parameters.
    pub fn check_replacement(&self, newer: &Self) -> Result<(), SqlError> {
        if self.kind != newer.kind {
            let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind");
            return Err(error.with_detail(format!("\"{}\" is a {}.", self.name, self.kind.word())));
        }
        let hint = format!("Use DROP {} {} first.", self.kind.word().to_ascii_uppercase(), self.shown());
        let refuse = |message: String| {
            Err(SqlError::new(INVALID_FUNCTION_DEFINITION, message).with_hint(hint.clone()))
        };
        let same_columns = match (&self.result.place, &newer.result.place) {
            (Place::Row(old), Place::Row(new)) => old == new,
            (old, new) => simplified(old.ty()) == simplified(new.ty()),
        };
        if !same_columns || self.result.setof != newer.result.setof {
            return refuse("cannot change return type of existing function".to_owned());
        }
        for (old, new) in self.inputs().zip(newer.inputs()) {
            if !old.name.is_empty() && old.name != new.name {
                return refuse(format!("cannot change name of input parameter \"{}\"", old.name));
            }
            if old.default.is_some() && new.default.is_none() {
                return refuse("cannot remove parameter defaults from existing function".to_owned());
            }
        }
        Ok(())
    }
}

/// A type without what is known of its scale.
pub(super) fn simplified(ty: Type) -> Type {
    use crate::types::Scalar::Numeric;
    match ty {
        Type::Scalar(Numeric { .. }) => Type::Scalar(Numeric { scale: None }),
        Type::Array(Numeric { .. }) => Type::Array(Numeric { scale: None }),
        other => other,
    }
}

fn invalid(types: &Types<'_>, span: Span, message: impl Into<String>) -> SqlError {
    SqlError::new(INVALID_FUNCTION_DEFINITION, message).with_position(span.position(types.text))
}

/// The place of a parameter or result.
fn place_of(types: &Types<'_>, ty: &TypeName) -> Result<Place, SqlError> {
    match types.resolve(ty, &mut |_| None)? {
        Named::Place(place) => Ok(place.stripped()),
        Named::Record => {
            let error = SqlError::unsupported("RECORD as the type of a parameter or result");
            let error = error.with_position(ty.span.position(types.text));
            Err(error.with_hint("Name the columns: RETURNS TABLE (...), or OUT parameters."))
        }
    }
}

impl ResultShape {
    fn new(types: &Types<'_>, definition: &Definition, parameters: &[Formal]) -> Result<Self, SqlError> {
        let outs: Vec<(String, Place)> = parameters
            .iter()
            .filter(|parameter| parameter.mode.is_out())
            .enumerate()
            .map(|(n, parameter)| match parameter.name.is_empty() {
                true => (format!("column{}", n + 1), parameter.place.clone()),
                false => (parameter.name.clone(), parameter.place.clone()),
            })
            .collect();
        match &definition.returns {
            None if outs.is_empty() => Ok(Self::nothing()),
            None => {
                let always_row = definition.kind == RoutineKind::Procedure;
                Ok(Self::of_variables(outs, false, always_row))
            }
            Some(Returns::Table(columns)) => {
                let columns: Result<Vec<_>, SqlError> =
                    columns.iter().map(|(name, ty)| Ok((name.text.clone(), place_of(types, ty)?))).collect();
                Ok(Self::of_variables(columns?, true, false))
            }
            Some(Returns::Type { ty, setof }) if !outs.is_empty() => {
                let shape = Self::of_variables(outs, *setof, false);
                let is_record = matches!(types.resolve(ty, &mut |_| None)?, Named::Record);
                let fits = match &shape.place {
                    Place::Row(_) => is_record,
                    place => !is_record && simplified(place_of(types, ty)?.ty()) == simplified(place.ty()),
                };
                match fits {
                    true => Ok(shape),
                    false => {
                        let shown = shape.place.ty();
                        let message =
                            format!("function result type must be {shown} because of OUT parameters");
                        Err(invalid(types, ty.span, message))
                    }
                }
            }
            Some(Returns::Type { ty, setof }) => {
                let place = place_of(types, ty)?;
                let columns = match &place {
                    Place::Row(row) => {
                        let names = row.ty.fields.iter().map(|(name, _)| name.clone());
                        names.zip(row.fields.iter().cloned()).collect()
                    }
                    Place::Void => Vec::new(),
                    other => vec![(definition.name.name.text.clone(), other.clone())],
                };
                Ok(Self { place, setof: *setof, columns, from_variables: false })
            }
        }
    }

    /// A value of the result as its columns.
    pub fn row(&self, value: Datum) -> Vec<Datum> {
        match (&self.place, value) {
            (Place::Void, _) => Vec::new(),
            (Place::Row(_), Datum::Row(fields)) => fields.to_vec(),
            (Place::Row(row), _) => vec![Datum::NULL; row.fields.len()],
            (_, value) => vec![value],
        }
    }

    /// No result.
    fn nothing() -> Self {
        Self { place: Place::Void, setof: false, columns: Vec::new(), from_variables: false }
    }

    /// The values of variables.
    fn of_variables(columns: Vec<(String, Place)>, setof: bool, always_row: bool) -> Self {
        let place = match columns.as_slice() {
            [(_, place)] if !always_row => place.clone(),
            _ => Place::Row(Arc::new(RowPlace::of_columns(&columns))),
        };
        Self { place, setof, columns, from_variables: true }
    }
}

/// Which of a database's routines an EXPLAIN means. FUNCTION and PROCEDURE tell two of one name apart; a
/// name that only one has means it whatever the word.
///
/// # Errors
/// 42883 if there is none, 42725 if there are several.
pub fn find_explained<Id: Copy>(
    catalog: &Catalog,
    wanted: &Explanation,
    known: &[(Id, &Signature)],
) -> Result<Id, SqlError> {
    let name = &wanted.routine.name.name.text;
    let named = |signature: &Signature| signature.name == *name;
    let of_kind = |signature: &Signature| wanted.kind.is_none_or(|kind| signature.kind == kind);
    let told = known.iter().any(|(_, signature)| named(signature) && of_kind(signature));
    let only_others = !told && known.iter().any(|(_, signature)| named(signature));
    let removal = Removal {
        text: wanted.text.clone(),
        kind: wanted.kind.filter(|_| !only_others),
        if_exists: false,
        routines: Vec::new(),
    };
    let candidates = known.iter().filter(|(_, signature)| only_others || of_kind(signature)).copied();
    match find_removed(catalog, &removal, &wanted.routine, candidates)? {
        Some(id) => Ok(id),
        None => {
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("routine \"{name}\" does not exist")))
        }
    }
}

/// Which of a database's routines a DROP means.
///
/// # Errors
/// 42883 if there is none, 42725 if there are several, 42809 if it is of the other kind, 0A000.
pub fn find_removed<'a, Id: Copy>(
    catalog: &Catalog,
    removal: &Removal,
    wanted: &RoutineReference,
    known: impl Iterator<Item = (Id, &'a Signature)>,
) -> Result<Option<Id>, SqlError> {
    let name = &wanted.name.name;
    let position = name.span.position(&removal.text);
    let types = Types { catalog, text: &removal.text };
    let key = match &wanted.parameters {
        None => None,
        Some(all) => {
            let places: Result<Vec<Place>, SqlError> = all.iter().map(|ty| place_of(&types, ty)).collect();
            Some(places?.iter().map(|place| simplified(place.ty())).collect::<Vec<_>>())
        }
    };
    let fits = |signature: &Signature| key.as_ref().is_none_or(|key| signature.key() == *key);
    let found: Vec<_> = known.filter(|(_, s)| s.name == name.text && fits(s)).collect();
    let what = removal.kind.map_or("routine", RoutineKind::word);
    match found.as_slice() {
        [] if removal.if_exists => Ok(None),
        [] => {
            let shown = match &key {
                None => {
                    let message = format!("could not find a {what} named \"{}\"", name.text);
                    return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_position(position));
                }
                Some(key) => key.iter().map(Type::to_string).collect::<Vec<_>>().join(", "),
            };
            let message = format!("{what} {}({shown}) does not exist", name.text);
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_position(position))
        }
        [(id, signature)] => match removal.kind {
            Some(kind) if kind != signature.kind => {
                let message = format!("{} is not a {what}", signature.shown());
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_position(position))
            }
            _ => Ok(Some(*id)),
        },
        _ => {
            let message = format!("{what} name \"{}\" is not unique", name.text);
            let error = SqlError::new(SqlState(*b"42725"), message).with_position(position);
            Err(error.with_hint("Specify the argument list to select it unambiguously."))
        }
    }
}
