//! Puts clauses into the order the parser reads them in.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// PostgreSQL writes `CREATE TABLE t (...) PARTITION BY ... WITH (...)`; the parser wants WITH
/// first. Moves it there. Tokens keep their places in the text, so that errors still point right.
pub(super) fn reorder(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut words = tokens.iter().filter_map(keyword);
    if words.next() != Some(Keyword::CREATE) || !words.any(|k| k == Keyword::PARTITION) {
        return tokens;
    }
    let Some(partition) = find_at_top(&tokens, 0, Keyword::PARTITION) else { return tokens };
    let Some(with) = find_at_top(&tokens, partition, Keyword::WITH) else { return tokens };
    let is_open = |t: &&TokenWithSpan| !super::is_blank(t);
    if tokens[with + 1..].iter().find(is_open).map(|t| &t.token) != Some(&Token::LParen) {
        return tokens;
    }
    let close = tokens[with..].iter().position(|t| t.token == Token::RParen);
    if let Some(close) = close {
        tokens[partition..=with + close].rotate_left(with - partition);
    }
    tokens
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Where `wanted` stands outside of parentheses, from `start` on.
fn find_at_top(tokens: &[TokenWithSpan], start: usize, wanted: Keyword) -> Option<usize> {
    let mut depth = 0_i64;
    tokens.iter().enumerate().skip(start).find_map(|(i, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        (depth == 0 && keyword(token) == Some(wanted)).then_some(i)
    })
}
