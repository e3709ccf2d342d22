//! A statement bound to tables, types and routines.
//!
//! A parameter has the type that its place demands. If several places demand different ones, it has the
//! first, and is converted elsewhere; if none demands any, it has the type of the value given, and the
//! statement is good for values of this type only. In a statement that calls routines all have the types of
//! their values, which say which routines are meant; a text has the type that its place demands, so that
//! `'{1,2}'` is an array where one is wanted.

use std::borrow::Cow;
use std::mem::{Discriminant, discriminant};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlState, Value};
use albireo_execute::Notice;
use albireo_plpgsql::body::{BoundCall, Outside, Place, Routine, bind_call};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Expr, ExprKind, VariableId, given, is_open};
use albireo_semantics::query::{ChangePlan, SelectPlan};
use albireo_semantics::query::{Files, bind_change, bind_select};
use albireo_semantics::types::{Scalar, Type};
use albireo_sql::ast::{Expr as Tree, Function, Statement, Value as Literal};
use albireo_sql::classify::changes_rows;
use albireo_sql::walk::Walk;

use super::rows::Shape;
use super::run::Ran;
use crate::Outcome;
use crate::routines::Library;

/// What a statement means, before access paths are chosen.
pub(crate) enum Meaning {
    /// A query.
    Select(SelectPlan),
    /// An INSERT, UPDATE or DELETE.
    Change(ChangePlan),
    /// A CALL.
    Call(BoundCall),
}

/// A statement to be bound.
#[derive(Clone, Copy)]
pub(crate) enum Parsed<'a> {
    /// A query or change.
    Statement(&'a Statement),
    /// A CALL.
    Call(&'a Function),
}

/// A statement where it is written.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) parsed: Parsed<'a>,
    /// The text that it stands in.
    pub(super) text: &'a str,
    /// Opens the files that it names; without it they are refused.
    pub(super) files: Option<&'a dyn Files>,
}

/// A bound statement.
pub(crate) struct Bound {
    pub(crate) meaning: Meaning,
    /// What surrounds it: its parameters.
    pub(crate) around: Routine,
    /// What it was bound to.
    pub(crate) library: Arc<Library>,
    /// The types of the parameters; none for one that does not occur.
    types: Vec<Option<Type>>,
    /// Whether it calls routines.
    pub(super) calls: bool,
    pub(super) shape: Shape,
}

/// For which values a statement was bound.
pub(super) struct GoodFor {
    /// How many.
    count: usize,
    /// Parameters whose type is that of the value given, with its variant.
    kinds: Vec<(usize, Discriminant<Value>)>,
    /// Whether NULL serves in the place of any value.
    null_serves: bool,
}

impl GoodFor {
    /// Values of these variants, no others.
    pub(super) fn exactly(values: &[Value]) -> Self {
        let kinds = values.iter().map(discriminant).enumerate().collect();
        Self { count: values.len(), kinds, null_serves: false }
    }

    /// Whether these are as many, of such variants.
    #[inline]
    pub(super) fn takes(&self, values: &[Value]) -> bool {
        let same = |(at, kind): &(usize, Discriminant<Value>)| match values.get(*at) {
            Some(value) => discriminant(value) == *kind || (self.null_serves && value.is_null()),
            None => false,
        };
        values.len() == self.count && self.kinds.iter().all(same)
    }

    /// Whether it is good for values of any variants.
    pub(super) fn is_general(&self) -> bool {
        self.kinds.is_empty()
    }
}

impl Meaning {
    /// Calls `visit` for every expression.
    fn each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Self::Select(plan) => plan.each_expr(visit),
            Self::Change(plan) => plan.each_expr(visit),
            Self::Call(call) => call.args.iter().for_each(|arg| arg.walk(visit)),
        }
    }
}

impl Bound {
    /// Whether it calls routines.
    pub(crate) fn calls_routines(&self) -> bool {
        self.calls
    }

    /// Whether it is a change whose rows a query finds, or makes, that calls no routine.
    pub(crate) fn is_found_without_calls(&self) -> bool {
        self.change().is_some_and(|plan| plan.change.without_early_calls().is_some())
    }

    /// Binds a statement for these values. There may be none where it is not run.
    /// `calls`: whether it is known to call routines.
    ///
    /// # Errors
    /// Names, types and what is not supported, with positions.
    pub(super) fn new(
        library: &Arc<Library>,
        written: Written<'_>,
        values: &[Value],
        calls: bool,
    ) -> Result<(Self, GoodFor), SqlError> {
        let count = match written.parsed {
            Parsed::Statement(statement) => highest_parameter(statement),
            Parsed::Call(function) => highest_parameter(&Tree::Function(function.clone())),
        };
        let binder = Binder { library, written, count };
        let Typed { meaning, mut around, types, kinds } = binder.typed(values, calls)?;
        for (id, ty) in around.parameters.iter().zip(&types) {
            around.variables[id.0 as usize].place = ty.as_ref().map_or(Place::Void, Place::of);
        }
        check_literals(&meaning)?;
        // NULL has no type that could tell two routines of one name apart.
        let good_for = GoodFor { count, kinds, null_serves: !calls || !library.is_overloaded() };
        let shape = Shape::of(&meaning);
        Ok((Self { meaning, around, library: Arc::clone(library), types, calls, shape }, good_for))
    }

    /// The values as the parameters hold them.
    ///
    /// # Errors
    /// 42P02 if there are more or fewer; what their conversion says.
    #[inline]
    pub(crate) fn arguments(&self, values: &[Value]) -> Result<Vec<Datum>, SqlError> {
        if values.len() != self.types.len() {
            return Err(miscounted(self.types.len(), values.len()));
        }
        let argument = |(value, ty): (&Value, &Option<Type>)| match ty {
            Some(ty) => given(value, ty),
            None => Ok(Datum::NULL),
        };
        values.iter().zip(&self.types).map(argument).collect()
    }

    /// The change that it is.
    pub(crate) fn change(&self) -> Option<&ChangePlan> {
        match &self.meaning {
            Meaning::Change(plan) => Some(plan),
            Meaning::Select(_) | Meaning::Call(_) => None,
        }
    }

    /// Whether it gives rows.
    pub(crate) fn has_columns(&self) -> bool {
        self.shape.has_columns()
    }

    /// What it gave, as clients see it.
    ///
    /// # Errors
    /// 22003 for a number that its column has no place for.
    pub(crate) fn outcome(&self, ran: Ran, execution: Duration) -> Result<Outcome, SqlError> {
        let Ran { count, rows, notices } = ran;
        if self.shape.has_columns() {
            return self.shape.result(rows, execution).map(Outcome::Rows);
        }
        let notices =
            notices.into_iter().filter(Notice::is_for_client).map(|notice| notice.message).collect();
        let verb = match &self.meaning {
            Meaning::Call(_) => return Ok(Outcome::Done { tag: "CALL".into(), rows: 0, notices }),
            Meaning::Select(_) => "SELECT",
            Meaning::Change(plan) => plan.change.verb(),
        };
        Ok(Outcome::Done { tag: tag_of(verb, count), rows: count, notices })
    }

    /// Its parameters: what they are called, and their types.
    pub(crate) fn parameters(&self) -> Vec<(VariableId, Option<Type>)> {
        self.around.parameters.iter().copied().zip(self.types.iter().cloned()).collect()
    }
}

/// PostgreSQL's command tag; those of single rows take no memory.
fn tag_of(verb: &'static str, count: u64) -> Cow<'static, str> {
    match (verb, count) {
        ("INSERT", 1) => "INSERT 0 1".into(),
        ("UPDATE", 1) => "UPDATE 1".into(),
        ("DELETE", 1) => "DELETE 1".into(),
        ("INSERT", count) => format!("INSERT 0 {count}").into(),
        (verb, count) => format!("{verb} {count}").into(),
    }
}

fn miscounted(wanted: usize, found: usize) -> SqlError {
    let text = format!("the statement has {wanted} parameters, but {found} were given");
    SqlError::new(SqlState::UNDEFINED_PARAMETER, text)
}

/// The highest `$n`.
fn highest_parameter(tree: &dyn Walk) -> usize {
    let mut highest = 0;
    tree.any_expression(&mut |expr| {
        if let Tree::Value(value) = expr
            && let Literal::Placeholder(name) = &value.value
            && let Some(number) = name.strip_prefix('$').and_then(|digits| digits.parse().ok())
        {
            highest = highest.max(number);
        }
        ControlFlow::Continue(())
    });
    highest
}

/// Looks at the literals of a statement.
///
/// # Errors
/// As [`albireo_semantics::expr::check_literals`].
fn check_literals(meaning: &Meaning) -> Result<(), SqlError> {
    let mut found = Ok(());
    meaning.each_expr(&mut |expr| {
        if found.is_ok() && matches!(expr.kind, ExprKind::Convert(..)) {
            found = albireo_semantics::expr::check_literals(expr);
        }
    });
    found
}

struct Binder<'a> {
    library: &'a Arc<Library>,
    written: Written<'a>,
    /// Parameters.
    count: usize,
}

/// More than PostgreSQL's protocol can carry.
const MOST_PARAMETERS: usize = 65_535;

type Types = Vec<Option<Type>>;

/// A statement whose parameters have types.
struct Typed {
    meaning: Meaning,
    around: Routine,
    types: Types,
    /// Parameters whose type is that of the value given, with its variant.
    kinds: Vec<(usize, Discriminant<Value>)>,
}

impl Binder<'_> {
    fn typed(&self, values: &[Value], calls: bool) -> Result<Typed, SqlError> {
        if self.count > MOST_PARAMETERS {
            return Err(SqlError::unsupported(format!("more than {MOST_PARAMETERS} parameters")));
        }
        let of_values = || -> Types { (0..self.count).map(|at| type_of(values.get(at))).collect() };
        let mut by_value = Vec::new();
        let bound = if calls {
            // Which routine is meant depends on the types of what it is given.
            by_value.extend(0..self.count);
            self.bound(&of_values())
        } else {
            self.bound(&vec![None; self.count])
        };
        let (meaning, around) = match bound {
            Ok(bound) => bound,
            Err(error) => {
                // Perhaps an operator could not be told without a type.
                let types = of_values();
                if calls || types.iter().all(Option::is_none) {
                    return Err(error);
                }
                by_value.extend((0..self.count).filter(|at| types[*at].is_some()));
                self.bound(&types).map_err(|_| error)?
            }
        };
        let demands = Demand::of_all(&meaning, &around);
        let uniform = demands.iter().all(|demand| demand.is_uniform());
        let mut types: Types = demands.into_iter().map(|demand| demand.ty).collect();
        let (meaning, around) = match uniform {
            true => (meaning, around),
            false => {
                by_value.extend((0..self.count).filter(|at| types[*at].is_none()));
                for (at, ty) in types.iter_mut().enumerate().filter(|(_, ty)| ty.is_none()) {
                    *ty = match values.get(at) {
                        Some(Value::Null) => None,
                        value => Some(type_of(value).unwrap_or(Type::Scalar(Scalar::Text))),
                    };
                }
                self.type_nulls(&mut types);
                self.bound(&types)?
            }
        };
        let kind = |at: usize| Some((at, discriminant(values.get(at)?)));
        let kinds = by_value.into_iter().filter_map(kind).collect();
        Ok(Typed { meaning, around, types, kinds })
    }

    /// Gives parameters that are NULL the types that their places demand beside those of the others.
    fn type_nulls(&self, types: &mut Types) {
        if types.iter().any(Option::is_none)
            && let Ok((meaning, around)) = self.bound(types)
        {
            for (ty, demand) in types.iter_mut().zip(Demand::of_all(&meaning, &around)) {
                *ty = ty.take().or(demand.ty);
            }
        }
        for ty in types {
            ty.get_or_insert(Type::Scalar(Scalar::Text));
        }
    }

    fn bound(&self, types: &[Option<Type>]) -> Result<(Meaning, Routine), SqlError> {
        let (catalog, routines) = (&self.library.catalog, self.library.as_ref());
        let mut outside = Outside::with_parameters(catalog, routines, self.written.text, types);
        if let Some(files) = self.written.files {
            outside = outside.reading(files);
        }
        let meaning = match self.written.parsed {
            Parsed::Call(function) => Meaning::Call(bind_call(routines, function, &mut outside)?),
            Parsed::Statement(change) if changes_rows(change) => {
                Meaning::Change(bind_change(catalog, change, &mut outside)?)
            }
            Parsed::Statement(Statement::Query(query)) => {
                Meaning::Select(bind_select(catalog, query, &mut outside)?)
            }
            Parsed::Statement(_) => return Err(SqlError::unsupported("this statement")),
        };
        Ok((meaning, outside.into_routine()))
    }
}

/// The type of a value, which is nothing for a text: it is read as what is wanted.
fn type_of(value: Option<&Value>) -> Option<Type> {
    match value? {
        Value::Text(_) => None,
        value => value.sql_type().map(Scalar::of).map(unscaled),
    }
}

/// NUMERIC of any scale: a value has its own.
fn unscaled(ty: Scalar) -> Type {
    Type::Scalar(match ty {
        Scalar::Numeric { .. } => Scalar::Numeric { scale: None },
        other => other,
    })
}

/// What the places of a parameter demand.
#[derive(Clone, Default)]
struct Demand {
    ty: Option<Type>,
    /// It stands where no type is demanded, or is of another than `ty`.
    differs: bool,
}

impl Demand {
    fn of_all(meaning: &Meaning, around: &Routine) -> Vec<Self> {
        let mut demands = vec![Self::default(); around.parameters.len()];
        meaning.each_expr(&mut |expr| {
            if let ExprKind::Variable(id) = expr.kind
                && let Some(at) = around.parameters.iter().position(|parameter| *parameter == id)
            {
                demands[at].meet(expr);
            }
        });
        demands
    }

    fn meet(&mut self, expr: &Expr) {
        if is_open(expr) {
            self.differs = true;
            return;
        }
        let ty = match &expr.ty {
            Type::Scalar(scalar) => unscaled(*scalar),
            other => other.clone(),
        };
        self.differs |= ty != expr.ty;
        match &self.ty {
            Some(known) => self.differs |= *known != ty,
            None => self.ty = Some(ty),
        }
    }

    /// Whether the parameter was bound as it is.
    fn is_uniform(&self) -> bool {
        !self.differs
    }
}
