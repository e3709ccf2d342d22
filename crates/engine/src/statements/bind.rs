//! A statement bound to tables, types and routines.
//!
//! A parameter has the type that its place demands. If several places demand different ones, it has the
//! first, and is converted elsewhere; if none demands any, it has the type of the value given, and the
//! statement is good for values of this type only.

use std::mem::{Discriminant, discriminant};
use std::ops::ControlFlow;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_procedure::body::{Outside, Place, Routine};
use albireo_procedure::datum::Datum;
use albireo_procedure::expr::{Expr, ExprKind, VariableId, given, is_open};
use albireo_procedure::plan::tree::AccessInfo;
use albireo_procedure::plan::{ChangePlan, SelectPlan, bind_select, planned};
use albireo_procedure::types::{Scalar, Type};
use albireo_semantics::query::Files;
use albireo_sql::ast::{Expr as Tree, Statement, Value as Literal};
use albireo_sql::classify::changes_rows;
use albireo_sql::walk::Walk as _;

use super::home::Home;
use super::rows::Shape;
use crate::routines::Library;

/// What a statement does.
pub(super) enum Work {
    /// It reads.
    Select(SelectPlan),
    /// It changes.
    Change(ChangePlan),
}

/// A bound statement.
pub(crate) struct Bound {
    pub(super) work: Work,
    /// What surrounds it: its parameters.
    pub(crate) around: Routine,
    /// What it was bound to.
    pub(crate) library: Arc<Library>,
    /// The types of the parameters; none for one that does not occur.
    types: Vec<Option<Type>>,
    /// Parameters whose type is that of the value given, with its variant.
    by_value: Vec<(usize, Discriminant<Value>)>,
    pub(super) home: Home,
    pub(super) shape: Shape,
    /// Whether it calls routines.
    pub(super) calls: bool,
}

impl Work {
    /// Calls `visit` for every expression.
    pub(super) fn each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Self::Select(plan) => plan.each_expr(visit),
            Self::Change(plan) => plan.each_expr(visit),
        }
    }

    pub(super) fn accesses(&self) -> &[AccessInfo] {
        match self {
            Self::Select(plan) => &plan.accesses,
            Self::Change(plan) => &plan.accesses,
        }
    }

    /// The first word.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Select(_) => "SELECT",
            Self::Change(plan) => plan.change.verb(),
        }
    }
}

impl Bound {
    /// Binds a statement that stands in `text` for these values. There may be none where it is not run.
    ///
    /// # Errors
    /// Names, types and what is not supported, with positions.
    pub(crate) fn new(
        library: &Arc<Library>,
        statement: &Statement,
        text: &str,
        values: &[Value],
        partitions: u16,
    ) -> Result<Self, SqlError> {
        let home = |work: &Work, around: &Routine| Home::new(work, around, partitions);
        Self::bind(library, statement, text, values, None, home)
    }

    /// Binds a change whose rows a query on a snapshot finds: without access paths, for all partitions. `files` opens
    /// those that it names.
    ///
    /// # Errors
    /// As [`Bound::new`].
    pub(crate) fn for_snapshot(
        library: &Arc<Library>,
        statement: &Statement,
        text: &str,
        values: &[Value],
        files: &dyn Files,
    ) -> Result<Self, SqlError> {
        Self::bind(library, statement, text, values, Some(files), |_, _| Home::All)
    }

    fn bind(
        library: &Arc<Library>,
        statement: &Statement,
        text: &str,
        values: &[Value],
        files: Option<&dyn Files>,
        home: impl FnOnce(&Work, &Routine) -> Home,
    ) -> Result<Self, SqlError> {
        let count = highest_parameter(statement);
        let binder = Binder { library, statement, text, count, files };
        let (work, mut around, types, by_value) = binder.typed(values)?;
        for (id, ty) in around.parameters.iter().zip(&types) {
            around.variables[id.0 as usize].place = ty.as_ref().map_or(Place::Void, Place::of);
        }
        check_literals(|visit| work.each_expr(visit))?;
        let home = home(&work, &around);
        let shape = Shape::of(&work);
        let mut calls = false;
        work.each_expr(&mut |expr| calls |= matches!(expr.kind, ExprKind::Call(..)));
        Ok(Self { work, around, library: Arc::clone(library), types, by_value, home, shape, calls })
    }

    /// The change that it is.
    pub(crate) fn change(&self) -> Option<&ChangePlan> {
        match &self.work {
            Work::Select(_) => None,
            Work::Change(plan) => Some(plan),
        }
    }

    /// The parameters and their types.
    pub(crate) fn parameters(&self) -> Vec<(VariableId, Option<Type>)> {
        self.around.parameters.iter().copied().zip(self.types.iter().cloned()).collect()
    }

    /// Whether it is good for these values: as many as it has parameters, of the types that it was bound for.
    #[inline]
    pub(super) fn takes(&self, values: &[Value]) -> bool {
        let same = |(at, kind): &(usize, Discriminant<Value>)| match values.get(*at) {
            Some(value) => value.is_null() || discriminant(value) == *kind,
            None => false,
        };
        values.len() == self.types.len() && self.by_value.iter().all(same)
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
}

fn miscounted(wanted: usize, found: usize) -> SqlError {
    let text = format!("the statement has {wanted} parameters, but {found} were given");
    SqlError::new(SqlState::UNDEFINED_PARAMETER, text)
}

/// The highest `$n`.
fn highest_parameter(statement: &Statement) -> usize {
    let mut highest = 0;
    statement.any_expression(&mut |expr| {
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

/// A query bound for a snapshot: what it means, its parameters and their types.
pub(crate) struct Logical {
    pub(crate) plan: SelectPlan,
    pub(crate) parameters: Vec<(VariableId, Option<Type>)>,
    /// Whether it is good for values of any type.
    pub(crate) general: bool,
}

impl Logical {
    /// Binds a query that stands in `text` for these values; `files` opens those that it names.
    ///
    /// # Errors
    /// As [`Bound::new`]; those of files.
    pub(crate) fn new(
        library: &Arc<Library>,
        statement: &Statement,
        text: &str,
        values: &[Value],
        files: &dyn Files,
    ) -> Result<Self, SqlError> {
        let count = highest_parameter(statement);
        let binder = Binder { library, statement, text, count, files: Some(files) };
        let (work, around, types, by_value) = binder.typed(values)?;
        let Work::Select(plan) = work else { return Err(SqlError::unsupported("a change as a query")) };
        check_literals(|visit| plan.each_expr(visit))?;
        let parameters = around.parameters.iter().copied().zip(types).collect();
        Ok(Self { plan, parameters, general: by_value.is_empty() })
    }
}

/// Looks at the literals of a statement.
///
/// # Errors
/// As [`albireo_semantics::expr::check_literals`].
fn check_literals(each: impl FnOnce(&mut dyn FnMut(&Expr))) -> Result<(), SqlError> {
    let mut found = Ok(());
    each(&mut |expr| {
        if found.is_ok() && matches!(expr.kind, ExprKind::Convert(..)) {
            found = albireo_semantics::expr::check_literals(expr);
        }
    });
    found
}

struct Binder<'a> {
    library: &'a Arc<Library>,
    statement: &'a Statement,
    text: &'a str,
    /// Parameters.
    count: usize,
    /// For a query on a snapshot, which has no access paths: what opens files.
    files: Option<&'a dyn Files>,
}

/// More than PostgreSQL's protocol can carry.
const MOST_PARAMETERS: usize = 65_535;

type Types = Vec<Option<Type>>;
type Typed = (Work, Routine, Types, Vec<(usize, Discriminant<Value>)>);

impl Binder<'_> {
    fn typed(&self, values: &[Value]) -> Result<Typed, SqlError> {
        if self.count > MOST_PARAMETERS {
            return Err(SqlError::unsupported(format!("more than {MOST_PARAMETERS} parameters")));
        }
        let open = vec![None; self.count];
        let mut by_value = Vec::new();
        let (work, around) = match self.bound(&open) {
            Ok(bound) => bound,
            Err(error) => {
                // Perhaps an operator could not be told without a type.
                let types: Types = (0..self.count).map(|at| type_of(values.get(at))).collect();
                by_value.extend((0..self.count).filter(|at| types[*at].is_some()));
                if by_value.is_empty() {
                    return Err(error);
                }
                self.bound(&types).map_err(|_| error)?
            }
        };
        let demands = Demand::of_all(&work, &around);
        let uniform = demands.iter().all(|demand| demand.is_uniform());
        let mut types: Types = demands.into_iter().map(|demand| demand.ty).collect();
        let (work, around) = match uniform {
            true => (work, around),
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
        let by_value = by_value.into_iter().filter_map(kind).collect();
        Ok((work, around, types, by_value))
    }

    /// Gives parameters that are NULL the types that their places demand beside those of the others.
    fn type_nulls(&self, types: &mut Types) {
        if types.iter().any(Option::is_none)
            && let Ok((work, around)) = self.bound(types)
        {
            for (ty, demand) in types.iter_mut().zip(Demand::of_all(&work, &around)) {
                *ty = ty.take().or(demand.ty);
            }
        }
        for ty in types {
            ty.get_or_insert(Type::Scalar(Scalar::Text));
        }
    }

    fn bound(&self, types: &[Option<Type>]) -> Result<(Work, Routine), SqlError> {
        let catalog = &self.library.catalog;
        let mut outside = Outside::with_parameters(catalog, self.library.as_ref(), self.text, types);
        if let Some(files) = self.files {
            outside = outside.reading(files);
        }
        let work = match self.statement {
            change if changes_rows(change) => {
                let plan = albireo_semantics::query::bind_change(catalog, change, &mut outside)?;
                Work::Change(if self.files.is_some() { plan } else { planned(plan)? })
            }
            Statement::Query(query) if self.files.is_some() => {
                Work::Select(albireo_semantics::query::bind_select(catalog, query, &mut outside)?)
            }
            Statement::Query(query) => Work::Select(bind_select(catalog, query, &mut outside)?),
            _ => return Err(SqlError::unsupported("this statement")),
        };
        Ok((work, outside.into_routine()))
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
    fn of_all(work: &Work, around: &Routine) -> Vec<Self> {
        let mut demands = vec![Self::default(); around.parameters.len()];
        work.each_expr(&mut |expr| {
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
