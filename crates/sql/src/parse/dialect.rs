//! PostgreSQL's dialect without what makes the parser slow.
//!
//! The parser reads each argument of a function as the name of an argument first
//! (`json_object('a': 1)`, where a name may be any expression) and, if it is none, once more as a
//! value: time doubles with each level of nesting, and `f(f(f(...)))` sixty deep would take years.
//! Arguments are named by identifiers here, as everywhere else in PostgreSQL.
//!
//! Where the parser is unsure it tries one reading after the other, and on a syntax error deep inside
//! it does so at each level on the way out, which doubles again. So the dialect counts how often an
//! expression is begun, and lets none begin when that is far more often than the text can explain.
//!
//! Everything else is handed on. The list is that of the methods which `PostgreSqlDialect` of
//! sqlparser 0.62 overrides; look through it when that version changes.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// How often each token may be the beginning of an expression.
const TRIES_PER_TOKEN: usize = 64;

/// The dialect we parse, for one parse.
#[derive(Debug)]
pub(crate) struct PostgreSql {
    /// How many expressions may still begin.
    left: Cell<usize>,
    /// Whether the word MERGE stands in the text.
    merges: bool,
}

impl PostgreSql {
    /// The dialect for a text of this many tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        Self { left: Cell::new(tokens.saturating_mul(TRIES_PER_TOKEN)), merges: false }
    }

    /// For a text in which the word MERGE stands, or not.
    pub(crate) fn with_merge(self, merges: bool) -> Self {
        Self { merges, ..self }
    }

    /// Whether the parser has tried too often and was stopped.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Hands questions without arguments on.
macro_rules! same {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool {
            BASE.$method()
        })*
    };
}

impl Dialect for PostgreSql {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    /// MERGE with all that PostgreSQL has in it; see [`super::merge`].
    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        if self.merges { super::merge::statement(parser) } else { None }
    }

    /// A sign binds tighter than any operator but casts, subscripts and COLLATE, where the parser would read
    /// `-2 ^ 2` as `-(2 ^ 2)`.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Some(Err(ParserError::RecursionLimitExceeded));
        };
        self.left.set(left);
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(BASE.prec_value(Precedence::AtTz));
        Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    /// `x BETWEEN SYMMETRIC a AND b`, which the parser lacks, is `x BETWEEN a AND b OR x BETWEEN b
    /// AND a`. `x IS DISTINCT FROM y` ends before AND and OR, which the parser takes for parts of `y`.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let word = |n: usize| match parser.peek_nth_token_ref(n).token {
            Token::Word(ref word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        if word(0) == Keyword::IS {
            let negated = word(1) == Keyword::NOT;
            let first = 1 + usize::from(negated);
            if word(first) != Keyword::DISTINCT || word(first + 1) != Keyword::FROM {
                return None;
            }
            for _ in 0..first + 2 {
                parser.advance_token();
            }
            return Some(distinct_from(parser, expr, negated));
        }
        let negated = word(0) == Keyword::NOT;
        let first = usize::from(negated);
        if word(first) != Keyword::BETWEEN || word(first + 1) != Keyword::SYMMETRIC {
            return BASE.parse_infix(parser, expr, precedence);
        }
        for _ in 0..first + 2 {
            parser.advance_token();
        }
        Some(between_symmetric(parser, expr, negated))
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        BASE.is_reserved_for_identifier(keyword)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    same! {
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_group_by_expr
        allow_extract_custom
        allow_extract_single_quotes
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_listen_notify
        supports_factorial_operator
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_colon_operator
        supports_empty_projections
        supports_nested_comments
        supports_string_escape_constant
        supports_numeric_literal_underscores
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_set_names
        supports_alter_column_type_using
        supports_notnull_operator
        supports_interval_options
        supports_insert_table_alias
        supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias
        supports_comma_separated_trim
        supports_xml_expressions
        supports_comment_optimizer_hint
    }
}

/// The rest of `expr IS [NOT] DISTINCT FROM` behind these words.
fn distinct_from(parser: &mut Parser<'_>, expr: &Expr, negated: bool) -> Result<Expr, ParserError> {
    let left = Box::new(expr.clone());
    let right = Box::new(parser.parse_subexpr(BASE.prec_value(Precedence::Is))?);
    Ok(match negated {
        true => Expr::IsNotDistinctFrom(left, right),
        false => Expr::IsDistinctFrom(left, right),
    })
}

/// The rest of `expr [NOT] BETWEEN SYMMETRIC` behind these words.
fn between_symmetric(parser: &mut Parser<'_>, expr: &Expr, negated: bool) -> Result<Expr, ParserError> {
    let precedence = BASE.prec_value(Precedence::Between);
    let a = parser.parse_subexpr(precedence)?;
    parser.expect_keyword(Keyword::AND)?;
    let b = parser.parse_subexpr(precedence)?;
    let between = |low: &Expr, high: &Expr| {
        let (low, high) = (Box::new(low.clone()), Box::new(high.clone()));
        Box::new(Expr::Between { expr: Box::new(expr.clone()), negated: false, low, high })
    };
    let (left, right) = (between(&a, &b), between(&b, &a));
    let either = Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Or, right }));
    Ok(match negated {
        true => Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) })),
        false => either,
    })
}
