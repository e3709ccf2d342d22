//! Refuses statements whose syntax tree would be too deep, before it is built.
//!
//! The parser limits nesting by parentheses itself, but builds `1 + 1 + 1 + ...`, `a OR b OR ...`
//! and `SELECT ... UNION SELECT ...` in loops, so that a long flat text becomes a tree as deep as
//! it is long, and copying or dropping it overflows the stack. Each such level costs one operator.
//! So operators are counted for each level of parentheses and summed over the levels that are open.
//!
//! Chains of AND, OR and UNION are what people and programs do write long. Those are let through
//! up to much higher limits, because `balance` makes them flat afterwards.

use albireo_base::{SqlError, SqlState};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::source::Source;

/// How deep a tree may be: chained operators, and twice the parentheses around them. A copy takes
/// up to 5 KiB of stack a level in an unoptimized build, and the stack of a thread is 2 MiB.
pub const MAX_DEPTH: usize = 300;
/// How many AND and OR one condition may chain.
pub const MAX_LOGIC: usize = 10_000;
/// How many queries UNION, EXCEPT and INTERSECT may chain.
pub const MAX_SET_OPERATIONS: usize = 2_000;

/// What a parenthesis adds to the depth: itself and what is around it.
const PAREN: usize = 2;
/// What a SELECT adds to the depth: its tree's nodes are large.
const SELECT: usize = 8;
/// What a prefix adds that the parser reads by recursion without a limit.
const PREFIX: usize = 20;

/// How many words may begin a statement within the statement; the parser needs much stack for each.
const STATEMENTS: usize = 16;

/// What is known of one open parenthesis.
#[derive(Default)]
struct Level {
    /// The SELECT it holds, if it does.
    base: usize,
    /// The depth of the term being read: operators, and the deepest parenthesis in it.
    run: usize,
    nested: usize,
    /// The depth of the deepest term before.
    deepest: usize,
    logic: usize,
    sets: usize,
    /// BETWEENs whose AND is still to come.
    betweens: usize,
    /// The last two keywords, the last one last.
    before: [Option<Keyword>; 2],
}

impl Level {
    /// A term ends: a comma, AND, OR, UNION.
    fn end_term(&mut self) {
        self.deepest = self.deepest.max(self.run + self.nested);
        self.run = 0;
        self.nested = 0;
    }
}

/// 54001 if the tree of `tokens` could be too deep.
pub(super) fn check(text: &str, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    // The depth of all in `outer`.
    let mut above = 0;
    let mut statements = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => {
                if token.token == Token::LBracket {
                    level.run += 1;
                }
                above += level.base + level.run + PAREN;
                outer.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket => {
                if let Some(parent) = outer.pop() {
                    level.end_term();
                    let inner = level.base + level.deepest + PAREN;
                    above -= parent.base + parent.run + PAREN;
                    level = parent;
                    level.nested = level.nested.max(inner);
                }
            }
            Token::Comma => level.end_term(),
            Token::Word(word) if word.quote_style.is_none() => {
                statements += usize::from(begins_statement(&level, word.keyword));
                count_word(&mut level, word.keyword);
            }
            other => level.run += usize::from(is_operator(other)),
        }
        let depth =
            above + level.base + level.run + level.nested.max(level.deepest.saturating_sub(level.run));
        let long = level.logic > MAX_LOGIC || level.sets > MAX_SET_OPERATIONS || statements > STATEMENTS;
        if depth > MAX_DEPTH || long {
            return Err(Source::new(text).locate(too_deep(), token.span));
        }
    }
    Ok(())
}

fn count_word(level: &mut Level, keyword: Keyword) {
    match keyword {
        Keyword::AND if level.betweens > 0 => {
            level.betweens -= 1;
            level.run += 1;
        }
        Keyword::AND | Keyword::OR => {
            level.end_term();
            level.logic += 1;
        }
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
            level.end_term();
            level.logic = 0;
            level.sets += 1;
        }
        Keyword::SELECT => level.base = SELECT,
        Keyword::FROM if is_distinct_from(level) => {}
        Keyword::FROM | Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER | Keyword::ON => {
            level.end_term();
        }
        Keyword::BETWEEN => {
            level.betweens += 1;
            level.run += 1;
        }
        Keyword::INTERVAL | Keyword::PRIOR => level.run += PREFIX,
        other => level.run += usize::from(is_operator_word(other)),
    }
    level.before = [level.before[1], Some(keyword)];
}

/// Whether the parser may read a whole statement after this word.
fn begins_statement(level: &Level, keyword: Keyword) -> bool {
    match keyword {
        Keyword::EXPLAIN | Keyword::DESCRIBE | Keyword::PREPARE | Keyword::BEGIN => true,
        Keyword::DESC => matches!(level.before[1], None | Some(Keyword::DESC)),
        _ => false,
    }
}

/// Whether a FROM is that of `IS [NOT] DISTINCT FROM`.
fn is_distinct_from(level: &Level) -> bool {
    matches!(level.before, [Some(Keyword::IS | Keyword::NOT), Some(Keyword::DISTINCT)])
}

/// The error for whatever is nested too deeply.
pub(super) fn too_deep() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "the statement is nested too deeply")
        .with_detail(format!(
            "One expression may be about {MAX_DEPTH} operators deep, with each parenthesis counting as \
             {PAREN} and each subquery as {}; a condition may have {MAX_LOGIC} AND and OR.",
            SELECT + PAREN
        ))
        .with_hint("Write IN (...) instead of many comparisons, and WITH instead of nested subqueries.")
}

/// Whether the token can add a level to the tree.
fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::Whitespace(_)
            | Token::Period
            | Token::SemiColon
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::Word(_)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::EOF
    )
}

fn is_operator_word(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::NOT
            | Keyword::XOR
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::OPERATOR
            | Keyword::OVERLAPS
            | Keyword::NOTNULL
            | Keyword::CASE
            | Keyword::MEMBER
            | Keyword::DIV
    )
}
