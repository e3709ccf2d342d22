//! Refuses statements whose syntax tree would be too deep, before it is built.
//!
//! The parser limits nesting by parentheses itself, but builds `1 + 1 + 1 + ...`, `a OR b OR ...`
//! and `SELECT ... UNION SELECT ...` in loops, so that a long flat text becomes a tree as deep as
//! it is long, and dropping it overflows the stack. Each such level costs one operator. So the
//! operators since the last comma are counted, for each level of parentheses, and summed over the
//! levels that are open.

use albireo_base::{SqlError, SqlState};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::source::Source;

/// How many operators one expression may chain.
pub const MAX_CHAIN: usize = 2_000;

/// 54001 if the tree of `tokens` could be deeper than [`MAX_CHAIN`].
pub(super) fn check(text: &str, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut open = vec![0_usize];
    let mut total = 0_usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => {
                open.push(1);
                total += 1;
            }
            Token::RParen | Token::RBracket => {
                // What the parentheses held is one operand from here on, but may still be an
                // operand of a chain: `(1)[1][1]`.
                if open.len() > 1 {
                    total -= open.pop().unwrap_or(0);
                }
                if let (Token::RBracket, Some(level)) = (&token.token, open.last_mut()) {
                    *level += 1;
                    total += 1;
                }
            }
            Token::Comma => {
                if let Some(level) = open.last_mut() {
                    total -= *level;
                    *level = 0;
                }
            }
            other if is_operator(other) => {
                if let Some(level) = open.last_mut() {
                    *level += 1;
                    total += 1;
                }
            }
            _ => {}
        }
        if total > MAX_CHAIN {
            let message = "the statement is nested too deeply";
            let error = SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
                .with_detail(format!("One expression may chain at most {MAX_CHAIN} operators."))
                .with_hint("Write IN (...) instead of many comparisons joined by OR.");
            return Err(Source::new(text).locate(error, token.span));
        }
    }
    Ok(())
}

/// Whether the token can add a level to the tree without a parenthesis.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && is_operator_word(word.keyword),
        Token::Whitespace(_)
        | Token::Period
        | Token::SemiColon
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::EOF => false,
        _ => true,
    }
}

fn is_operator_word(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::XOR
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::BETWEEN
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::OPERATOR
            | Keyword::OVERLAPS
            | Keyword::NOTNULL
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::MINUS
            | Keyword::CASE
            | Keyword::EXPLAIN
            | Keyword::MEMBER
            | Keyword::DIV
    )
}
