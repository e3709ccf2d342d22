//! Files in FROM: `'people.csv'`, `read_csv('people.txt', delim = ';')`.
//!
//! Responsible for: what is written of a file, and its columns as a query sees them. Not responsible for: what
//! is in files and which options there are, which [`Files`] knows.

use std::any::Any;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_sql::ast::{
    BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias, UnaryOperator,
    Value as Literal,
};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::from::{From, unkeyed};
use super::scope::Scope;
use super::tree::{Pool, RelationSource};
use super::view::View;
use crate::expr::Names as _;
use crate::types::Type;

/// The formats of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// Lines of values.
    Csv,
    /// Lines of objects.
    Json,
    /// Apache Parquet.
    Parquet,
}

/// A file as FROM names it.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedFile {
    /// Its path, as written.
    pub path: String,
    /// The function that reads it, as written, and the format it reads; none if the path says the format.
    pub function: Option<(String, FileFormat)>,
    /// The options of the function.
    pub options: Vec<FileOption>,
}

/// An option of a function that reads a file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileOption {
    /// Its name in lower case.
    pub name: String,
    /// Its value: a text, a BOOLEAN or a BIGINT; none if it is no such literal.
    pub value: Option<Value>,
    /// The value as written.
    pub written: String,
}

/// A file that is there, with the columns that it had when it was opened.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path, as written.
    pub path: String,
    /// Its columns in order.
    pub columns: Vec<FileColumn>,
    /// What reads its rows, to whoever opened it.
    pub reader: Arc<dyn Any + Send + Sync>,
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reader, &other.reader)
    }
}

/// A column of a file.
#[derive(Clone, Debug)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// Its type; or what the file calls it, if it is none of SQL's: then it cannot be read.
    pub ty: Result<Type, String>,
}

/// Opens what a statement names and the catalog does not have: files and system views. Within one statement a file is
/// opened once, however often it is named.
pub trait Files {
    /// The file of this name.
    ///
    /// # Errors
    /// There is none, it is not what its format wants, it is a URL, or an option is wrong.
    fn open(&self, named: &NamedFile) -> Result<Arc<File>, SqlError>;

    /// The system view of this name, if there is one.
    fn view(&self, _schema: &str, _name: &str) -> Option<View> {
        None
    }
}

/// The path that a name in FROM is, and where it stands.
pub(super) fn path_of(name: &ObjectName) -> Option<(&str, Span)> {
    let ident = only(name)?;
    (ident.quote_style == Some('\'')).then_some((ident.value.as_str(), ident.span))
}

/// The format that a function of this name reads.
pub(super) fn format_of(function: &ObjectName) -> Option<FileFormat> {
    match names::fold(only(function)?).as_str() {
        "read_csv" | "read_csv_auto" => Some(FileFormat::Csv),
        "read_json" | "read_json_auto" | "read_ndjson" => Some(FileFormat::Json),
        "read_parquet" => Some(FileFormat::Parquet),
        _ => None,
    }
}

fn only(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

impl From {
    /// `FROM 'people.csv'`, which is called `people`.
    pub(super) fn path(
        &mut self,
        scope: &mut Scope<'_>,
        (path, span): (&str, Span),
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let stem = file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(file);
        let named = NamedFile { path: path.to_owned(), function: None, options: Vec::new() };
        self.file(scope, &named, stem, span, alias)
    }

    /// `FROM read_csv('people.txt', delim = ';')`.
    pub(super) fn file_function(
        &mut self,
        scope: &mut Scope<'_>,
        (name, format): (&ObjectName, FileFormat),
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let written = names::qualified(name, scope.source())?;
        let named = named(name, format, args);
        let named = named.map_err(|error| scope.source().locate(error, written.span))?;
        self.file(scope, &named, &written.name, written.span, alias)
    }

    fn file(
        &mut self,
        scope: &mut Scope<'_>,
        named: &NamedFile,
        name: &str,
        span: Span,
        alias: Option<&TableAlias>,
    ) -> Result<Pool, SqlError> {
        let opened = match scope.files() {
            Some(files) => files.open(named),
            None => Err(SqlError::unsupported("a file in FROM of a routine or a transaction")
                .with_hint("Load its rows into a table with COPY.")),
        };
        let file = opened.map_err(|error| scope.source().locate(error, span))?;
        // No expression reads a column without a type: `Scope::meaning` refuses it.
        let ty = |column: &FileColumn| column.ty.clone().unwrap_or(Type::Void);
        let columns = file.columns.iter().map(|column| (column.name.clone(), ty(column))).collect();
        let source = RelationSource::File(Arc::clone(&file));
        let relation = self.add(scope, source, unkeyed(name.to_owned(), columns), alias)?;
        for (at, column) in (0..).zip(&file.columns) {
            if let Err(ty) = &column.ty {
                let of = format!("{ty}, the type of column \"{}\" of file \"{}\",", column.name, file.path);
                scope.foreign.push(((relation, at), of));
            }
        }
        Ok(Pool::one(relation, 0))
    }
}

/// What a call says.
fn named(name: &ObjectName, format: FileFormat, args: &[FunctionArg]) -> Result<NamedFile, SqlError> {
    let invalid = |text: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
    let path = match args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(path))) => literal(path),
        _ => None,
    };
    let Some(Value::Text(path)) = path else {
        return Err(
            invalid(format!("{name} needs the name of a file")).with_hint("Write it in single quotes.")
        );
    };
    let option = |arg: &FunctionArg| match option(arg) {
        Some((name, value)) => Ok(FileOption {
            name: name.value.to_lowercase(),
            value: literal(value),
            written: value.to_string(),
        }),
        None => Err(invalid(format!("an argument of {name} is no option: {arg}"))
            .with_hint("Options are written as in delim = ';'.")),
    };
    let options = args[1..].iter().map(option).collect::<Result<_, _>>()?;
    Ok(NamedFile { path, function: Some((name.to_string(), format)), options })
}

/// `name = value`, `name := value` or `name => value`.
fn option(arg: &FunctionArg) -> Option<(&Ident, &Ast)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { name: Ast::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name, value))
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Ast::Identifier(name) => Some((name, right)),
            _ => None,
        },
        _ => None,
    }
}

/// The value of a text, a truth value or a whole number.
fn literal(tree: &Ast) -> Option<Value> {
    match tree {
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            Value::BigInt(number) => number.checked_neg().map(Value::BigInt),
            _ => None,
        },
        Ast::Value(value) => match &value.value {
            Literal::Boolean(value) => Some(Value::Bool(*value)),
            Literal::Number(digits, _) => digits.parse().ok().map(Value::BigInt),
            other => other.clone().into_string().map(Value::Text),
        },
        _ => None,
    }
}
