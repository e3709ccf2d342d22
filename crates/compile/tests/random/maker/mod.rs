//! Makes programs: what is in scope, and what it is made of.
//!
//! What PostgreSQL decides by its plans may not show. It computes constants before anything is run, and
//! those of the arguments too in statements that are no expressions; so inside of queries expressions
//! cannot fail ([`Mode::Safe`]), and elsewhere what fails has a variable in it. Every query has an order.
//! Numbers stay below 38 digits, texts and arrays below some fifty characters or elements, and loops
//! count their rounds.

mod change;
mod condition;
mod control;
mod expression;
mod number;
mod query;
mod routine;
mod statement;
mod text;

use super::program::{Node, Program};
use super::rng::Rng;
use super::tables::{Table, tables};
use super::types::{Item, Kind, Ty};

/// An expression.
#[derive(Clone, Debug)]
pub struct Ex {
    pub text: String,
    /// How many digits a number has at most before and behind the point.
    pub digits: (u32, u32),
    /// Whether it is the same whatever is in variables and rows.
    pub constant: bool,
}

/// What expressions may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Fail, and call routines.
    Free,
    /// Fail.
    Alone,
    /// Read tables.
    Safe,
}

/// Something with a name that has a value.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub ty: Ty,
    pub writable: bool,
}

/// A record or a row of a table, with its fields.
#[derive(Clone, Debug)]
pub struct Record {
    pub name: String,
    pub fields: Vec<Variable>,
    /// The table whose rows it holds, if it was declared so.
    pub table: Option<usize>,
}

#[derive(Clone, Default, Debug)]
struct Scope {
    label: Option<String>,
    variables: Vec<Variable>,
    records: Vec<Record>,
}

/// A relation of a query, with columns.
#[derive(Clone, Debug)]
pub struct Relation {
    pub alias: String,
    pub columns: Vec<Variable>,
    /// Columns by which rows are put in order; it is one order.
    pub key: Vec<String>,
}

/// A routine that others call.
#[derive(Clone, Debug)]
pub struct Helper {
    pub name: String,
    pub parameters: Vec<Kind>,
    pub result: HelperResult,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HelperResult {
    /// A function of one value.
    Value(Kind),
    /// A procedure: whether each parameter comes back.
    Outs(Vec<(Ty, bool)>),
    /// A function of rows.
    Rows(Vec<(String, Kind)>),
}

/// What a routine gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    Value(Ty),
    Nothing,
    /// OUT parameters, or those of a procedure.
    Outs,
    Set(Kind),
    Table(Vec<(String, Kind)>),
    RowOf(usize),
}

/// What EXIT can leave.
#[derive(Clone, Debug)]
struct Around {
    label: Option<String>,
    is_loop: bool,
}

/// The generator.
pub struct Maker {
    rng: Rng,
    tables: Vec<Table>,
    helpers: Vec<Helper>,
    scopes: Vec<Scope>,
    relations: Vec<Relation>,
    mode: Mode,
    /// How many statements may still come.
    budget: usize,
    /// Loops and blocks around, the innermost last.
    around: Vec<Around>,
    /// The declarations of the blocks around.
    declarations: Vec<Vec<Node>>,
    /// How often the statement at hand may be run.
    rounds: usize,
    /// How many handlers are around.
    handlers: usize,
    shape: Shape,
    /// Whether tables are not changed.
    read_only: bool,
    names: usize,
    /// How deep queries are in each other.
    queries: usize,
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let tables = tables(&mut rng);
    let mut maker = Maker {
        rng,
        tables,
        helpers: Vec::new(),
        scopes: Vec::new(),
        relations: Vec::new(),
        mode: Mode::Free,
        budget: 0,
        around: Vec::new(),
        declarations: Vec::new(),
        rounds: 1,
        handlers: 0,
        shape: Shape::Nothing,
        read_only: false,
        names: 0,
        queries: 0,
    };
    maker.program()
}

impl Ex {
    fn new(text: impl Into<String>, kind: Kind, parts: &[&Self]) -> Self {
        Self { text: text.into(), digits: kind.digits(), constant: parts.iter().all(|part| part.constant) }
    }

    fn with_digits(self, digits: (u32, u32)) -> Self {
        Self { digits, ..self }
    }

    fn null() -> Self {
        Self { text: "NULL".to_owned(), digits: (1, 0), constant: true }
    }
}

impl Maker {
    /// A name that nothing else has.
    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Whether expressions may fail.
    fn free(&self) -> bool {
        self.mode != Mode::Safe
    }

    /// With another mode.
    fn in_mode<R>(&mut self, mode: Mode, act: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.mode, mode);
        let result = act(self);
        self.mode = before;
        result
    }

    /// The variables that a name means here, the innermost of a name; also as their block calls them.
    fn variables(&self) -> Vec<Variable> {
        let mut found: Vec<Variable> = Vec::new();
        for scope in self.scopes.iter().rev() {
            for variable in scope.variables.iter().rev() {
                if found.iter().all(|other| other.name != variable.name) {
                    found.push(variable.clone());
                } else if let Some(label) = &scope.label {
                    let name = format!("{label}.{}", variable.name);
                    found.push(Variable { name, ..variable.clone() });
                }
            }
        }
        found
    }

    fn records(&self) -> Vec<Record> {
        self.scopes.iter().flat_map(|scope| scope.records.clone()).collect()
    }

    /// Variables, and fields of records.
    fn places(&self) -> Vec<Variable> {
        let mut all = self.variables();
        for record in self.records() {
            let fields = record.fields.iter();
            all.extend(fields.map(|field| {
                let name = format!("{}.{}", record.name, field.name);
                Variable { name, ..field.clone() }
            }));
        }
        all
    }

    /// Everything that has a value: columns as often as all variables together.
    fn values(&mut self, fits: impl Fn(Ty) -> bool) -> Vec<Variable> {
        let mut columns = Vec::new();
        for relation in &self.relations {
            for column in relation.columns.iter().filter(|column| fits(column.ty)) {
                let name = format!("{}.{}", relation.alias, column.name);
                columns.push(Variable { name, ..column.clone() });
            }
        }
        if !columns.is_empty() && self.rng.chance(70) {
            return columns;
        }
        let places: Vec<Variable> = self.places().into_iter().filter(|place| fits(place.ty)).collect();
        if places.is_empty() { columns } else { places }
    }

    fn writable(&self, fits: impl Fn(Ty) -> bool) -> Vec<Variable> {
        self.places().into_iter().filter(|place| place.writable && fits(place.ty)).collect()
    }

    fn declare(&mut self, variable: Variable) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables.push(variable);
        }
    }

    fn array_of(&mut self, item: Item) -> Option<Variable> {
        let all = self.values(|ty| ty == Ty::Array(item));
        (!all.is_empty()).then(|| self.rng.pick(&all))
    }
}
