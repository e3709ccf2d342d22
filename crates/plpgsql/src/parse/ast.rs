//! The tree of a procedure's body.
//!
//! Every node has the bytes of the body it was read from; a node's span lies within its parent's. The
//! trees of SQL inside have lines and columns instead, which count from the beginning of the body too:
//! [`Source::new(body)`](albireo_sql::source::Source) turns them into positions.

use albireo_base::SqlState;
use albireo_sql::ast;

/// Bytes of the body, from `start` up to and not including `end`; both are at a character's boundary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The character of `body` the span begins at, from 1, as errors count.
    pub fn position(self, body: &str) -> usize {
        body.get(..self.start).map_or(0, |before| before.chars().count()) + 1
    }

    /// The text of the span in the body it belongs to; nothing in another body.
    pub fn text(self, body: &str) -> &str {
        body.get(self.start..self.end).unwrap_or_default()
    }

    /// From the beginning of this span to the end of `other`.
    pub(super) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }
}

/// A whole body.
#[derive(Clone, PartialEq, Debug)]
pub struct Body {
    /// What `#...` lines before the first block say.
    pub options: Options,
    /// The outermost block.
    pub block: Block,
    /// From the first option or the block to its end.
    pub span: Span,
}

/// Settings of one body; the last of several that contradict each other counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// `#variable_conflict`.
    pub variable_conflict: VariableConflict,
    /// `#print_strict_params`, if given.
    pub print_strict_params: Option<bool>,
    /// `#option dump`, which has no effect.
    pub dump: bool,
}

/// What a name means that is a variable's and a column's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum VariableConflict {
    /// It is an error.
    #[default]
    Error,
    /// The variable.
    UseVariable,
    /// The column.
    UseColumn,
}

/// An identifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// What it means: as written between double quotes, else in lower case.
    pub text: String,
    /// Whether it stands in double quotes.
    pub quoted: bool,
    /// Where it stands, quotes included.
    pub span: Span,
}

/// A variable, or a field of one, by its name: `x`, `row.field`, `block.x`, `block.row.field`, `$1`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableRef {
    /// At least one. A parameter by number is one name that is not quoted and begins with `$`.
    pub parts: Vec<Name>,
    /// All parts.
    pub span: Span,
}

/// `[<<label>>] [DECLARE ...] BEGIN ... [EXCEPTION ...] END [label]`.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// Its label.
    pub label: Option<Name>,
    /// What it declares, in order; no name twice.
    pub declarations: Vec<Declaration>,
    /// What it does.
    pub statements: Vec<Statement>,
    /// What it does when that fails; the first handler that fits.
    pub handlers: Vec<Handler>,
    /// From the label or first word to END or the label after it.
    pub span: Span,
}

/// One line of DECLARE.
#[derive(Clone, PartialEq, Debug)]
pub struct Declaration {
    /// The name declared.
    pub name: Name,
    /// As what.
    pub kind: DeclarationKind,
    /// From the name to the semicolon.
    pub span: Span,
}

/// What a declaration declares.
#[derive(Clone, PartialEq, Debug)]
pub enum DeclarationKind {
    /// `[CONSTANT] type [NOT NULL] [:= value]`.
    Variable {
        /// Whether nothing may be assigned to it.
        constant: bool,
        /// Its type.
        ty: TypeName,
        /// Whether NULL may not be assigned to it; then there is a default.
        not_null: bool,
        /// Its first value; NULL if missing.
        default: Option<Expression>,
    },
    /// `ALIAS FOR variable`.
    Alias(VariableRef),
}

/// The type of a variable.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeName {
    /// Which.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// The ways to name a type.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// A type of SQL, or a table's name for a row of it.
    Plain(Box<ast::DataType>),
    /// An array, of one dimension, of such a type.
    Array(Box<ast::DataType>),
    /// `RECORD`.
    Record,
    /// `name%TYPE`: as a variable or as a column of a table.
    Of(Vec<Name>),
    /// `name%ROWTYPE`: a row of a table.
    RowOf(Vec<Name>),
}

/// `WHEN condition [OR condition ...] THEN ...`.
#[derive(Clone, PartialEq, Debug)]
pub struct Handler {
    /// What it handles; at least one.
    pub conditions: Vec<Condition>,
    /// What it does.
    pub statements: Vec<Statement>,
    /// From WHEN to the last statement.
    pub span: Span,
}

/// Which errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Which.
    pub kind: ConditionKind,
    /// Where it stands.
    pub span: Span,
}

/// The ways to say which errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConditionKind {
    /// `OTHERS`; not in RAISE.
    Others,
    /// A condition by name.
    Named {
        /// Its name, in lower case.
        name: String,
        /// What it stands for; at least one. RAISE means the first.
        states: Vec<SqlState>,
    },
    /// `SQLSTATE '...'`.
    State(SqlState),
}

/// An SQL expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    /// Its tree. `x := count(*) FROM t` has the tree of `(SELECT count(*) FROM t)`.
    pub tree: Box<ast::Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A query: SELECT, VALUES, WITH, or INSERT, UPDATE or DELETE.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    /// Its tree: a query, an INSERT, an UPDATE or a DELETE; behind WITH, these are a query too.
    pub tree: Box<ast::Statement>,
    /// Where it stands.
    pub span: Span,
}

/// `INTO [STRICT] target [, ...]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Into {
    /// Whether there must be exactly one row.
    pub strict: bool,
    /// Where the row goes; at least one.
    pub targets: Vec<VariableRef>,
    /// From INTO to the last target.
    pub span: Span,
}

/// One statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Which.
    pub kind: StatementKind,
    /// From its label or first word to its semicolon.
    pub span: Span,
}

/// All statements.
#[derive(Clone, PartialEq, Debug)]
pub enum StatementKind {
    /// A nested block.
    Block(Block),
    /// `target := value`.
    Assign {
        /// Where to.
        target: Assignee,
        /// What.
        value: Expression,
    },
    /// `IF ... THEN ... [ELSIF ...] [ELSE ...] END IF`.
    If {
        /// IF and every ELSIF.
        branches: Vec<Branch>,
        /// ELSE.
        otherwise: Option<Vec<Statement>>,
    },
    /// `CASE [operand] WHEN ... END CASE`. Without ELSE it is an error when no branch fits.
    Case {
        /// What the branches' values are compared with; without, they are conditions.
        operand: Option<Expression>,
        /// Every WHEN.
        branches: Vec<CaseBranch>,
        /// ELSE.
        otherwise: Option<Vec<Statement>>,
    },
    /// LOOP, WHILE, FOR, FOREACH.
    Loop(Loop),
    /// EXIT or CONTINUE.
    Jump(Jump),
    /// `PERFORM ...`: a query whose rows nobody wants. The tree is that of `SELECT ...`.
    Perform(Query),
    /// `CALL procedure(...)`.
    Call {
        /// The procedure and its arguments.
        function: Box<ast::Function>,
    },
    /// An SQL statement.
    Sql {
        /// The statement without INTO; its span holds that of INTO.
        query: Query,
        /// INTO. A query without is an error when it runs; the parser lets it pass, as PostgreSQL does.
        into: Option<Into>,
    },
    /// `GET [CURRENT | STACKED] DIAGNOSTICS`.
    Diagnostics(Vec<Diagnostic>),
    /// `SET LOCAL synchronous_commit`: whether the caller waits for the disk; `None` is `DEFAULT`.
    SynchronousCommit(Option<bool>),
    /// `RAISE`.
    Raise(Raise),
    /// `ASSERT condition [, message]`.
    Assert {
        /// What must be true.
        condition: Expression,
        /// What the error says.
        message: Option<Expression>,
    },
    /// `RETURN [value]`.
    Return(Option<Expression>),
    /// `RETURN NEXT [value]`.
    ReturnNext(Option<Expression>),
    /// `RETURN QUERY query`.
    ReturnQuery(Query),
    /// `NULL`.
    Null,
}

/// What an assignment sets: a variable, or part of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignee {
    /// The first name: a variable, a parameter such as `$1`, or a block's label.
    pub variable: Name,
    /// What follows; at most one subscript in succession.
    pub path: Vec<Accessor>,
    /// All of it.
    pub span: Span,
}

/// A step from a variable to its part.
#[derive(Clone, PartialEq, Debug)]
pub enum Accessor {
    /// `.field`.
    Field(Name),
    /// `[subscript]`.
    Subscript(Expression),
}

/// `IF condition THEN ...` or `ELSIF condition THEN ...`.
#[derive(Clone, PartialEq, Debug)]
pub struct Branch {
    /// When.
    pub condition: Expression,
    /// What to do.
    pub statements: Vec<Statement>,
    /// From its first word to its last statement.
    pub span: Span,
}

/// `WHEN value [, value ...] THEN ...`.
#[derive(Clone, PartialEq, Debug)]
pub struct CaseBranch {
    /// The values, one of which the operand must equal; without an operand, the one condition.
    pub values: Vec<Expression>,
    /// What to do.
    pub statements: Vec<Statement>,
    /// From WHEN to its last statement.
    pub span: Span,
}

/// A loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// Its label.
    pub label: Option<Name>,
    /// Over what.
    pub kind: LoopKind,
    /// What it repeats.
    pub statements: Vec<Statement>,
}

/// The kinds of loops.
#[derive(Clone, PartialEq, Debug)]
pub enum LoopKind {
    /// `LOOP`: until something leaves it.
    Endless,
    /// `WHILE condition LOOP`.
    While(Expression),
    /// `FOR variable IN [REVERSE] from .. to [BY step] LOOP`.
    Range {
        /// A new integer variable, which hides others of its name.
        variable: Name,
        /// Whether it counts down.
        reverse: bool,
        /// Its first value.
        from: Expression,
        /// Its last.
        to: Expression,
        /// The distance between two, 1 if missing.
        step: Option<Expression>,
    },
    /// `FOR targets IN query LOOP`.
    Query {
        /// A record or row, or variables.
        targets: Vec<VariableRef>,
        /// Whose rows.
        query: Query,
    },
    /// `FOREACH targets IN ARRAY array LOOP`.
    Array {
        /// A variable, or several for an array of rows.
        targets: Vec<VariableRef>,
        /// Whose elements.
        array: Expression,
    },
}

/// `EXIT` or `CONTINUE`, with `[label] [WHEN condition]`. What it names surrounds it.
#[derive(Clone, PartialEq, Debug)]
pub struct Jump {
    /// Which.
    pub kind: JumpKind,
    /// The loop, or for EXIT the block, it leaves or goes on with; the innermost loop if missing.
    pub label: Option<Name>,
    /// Only if this is true.
    pub when: Option<Expression>,
}

/// The two jumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JumpKind {
    /// Behind the loop or block.
    Exit,
    /// To the next round of the loop.
    Continue,
}

/// `variable = ITEM` of GET DIAGNOSTICS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Where to.
    pub target: VariableRef,
    /// What.
    pub item: DiagnosticItem,
    /// Both.
    pub span: Span,
}

/// What GET DIAGNOSTICS can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiagnosticItem {
    /// How many rows the last statement saw or changed; CURRENT only, all others STACKED only.
    RowCount,
    /// The SQLSTATE of the error being handled.
    ReturnedSqlstate,
    /// Its message.
    MessageText,
    /// Its detail.
    Detail,
    /// Its hint.
    Hint,
}

/// `RAISE`.
#[derive(Clone, PartialEq, Debug)]
pub struct Raise {
    /// How bad it is.
    pub level: RaiseLevel,
    /// What it says first.
    pub kind: RaiseKind,
    /// USING; no option twice, and none that `kind` has said.
    pub options: Vec<RaiseOption>,
}

/// How bad what RAISE says is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaiseLevel {
    /// For who looks for mistakes.
    Debug,
    /// For the log.
    Log,
    /// For the client, if it asked.
    Info,
    /// For the client.
    Notice,
    /// For the client, who should look.
    Warning,
    /// An error. The level when none is written.
    Exception,
}

/// What follows RAISE and its level.
#[derive(Clone, PartialEq, Debug)]
pub enum RaiseKind {
    /// Nothing at all: the error being handled, once more.
    Again,
    /// A message with arguments.
    Message(RaiseMessage),
    /// A condition by name or SQLSTATE.
    Condition(Condition),
    /// Only USING.
    Options,
}

/// `'format' [, argument ...]`.
#[derive(Clone, PartialEq, Debug)]
pub struct RaiseMessage {
    /// The texts around the arguments, one more than these, with `%%` as `%`.
    pub pieces: Vec<String>,
    /// What goes between them.
    pub arguments: Vec<Expression>,
    /// From the format to the last argument.
    pub span: Span,
}

/// `OPTION = value` of RAISE.
#[derive(Clone, PartialEq, Debug)]
pub struct RaiseOption {
    /// Which.
    pub kind: RaiseOptionKind,
    /// What.
    pub value: Expression,
    /// Both.
    pub span: Span,
}

/// The options of RAISE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaiseOptionKind {
    /// A condition's name or an SQLSTATE.
    Errcode,
    /// The message.
    Message,
    /// The facts behind it.
    Detail,
    /// The remedy.
    Hint,
    /// The name of the column concerned.
    Column,
    /// The name of the constraint.
    Constraint,
    /// The name of the type.
    Datatype,
    /// The name of the table.
    Table,
    /// The name of the schema.
    Schema,
}
