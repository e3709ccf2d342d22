//! Puts what the parser does not read as PostgreSQL writes it into the parser's form.

use albireo_base::SqlError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Everything the parser wants otherwise than PostgreSQL. Tokens keep their places in the text, so
/// that errors still point right.
pub(super) fn reorder(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    options_first(without_match(plain_locks(spell_out_table(tokens))))
}

/// `COPY ... (HEADER MATCH)`: the parser knows no MATCH there; `copy` looks for it in the text.
fn without_match(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut words = (0..tokens.len()).filter(|i| !super::is_blank(&tokens[*i]));
    if words.next().is_none_or(|first| keyword(&tokens[first]) != Some(Keyword::COPY)) {
        return tokens;
    }
    let words: Vec<usize> = words.collect();
    let found = words.windows(2).find(|pair| {
        keyword(&tokens[pair[0]]) == Some(Keyword::HEADER)
            && keyword(&tokens[pair[1]]) == Some(Keyword::MATCH)
    });
    if let Some(at) = found.map(|pair| pair[1]) {
        tokens.remove(at);
    }
    tokens
}

/// Refuses what the parser reads and we do not want it to: statements of other languages than SQL,
/// which it nests without limit.
pub(super) fn refuse(text: &str, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    refuse_exclusion(text, tokens)?;
    let mut depth = 0_i64;
    let mut words = tokens.iter().filter_map(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        keyword(token).filter(|_| depth == 0).map(|keyword| (keyword, token))
    });
    let prefix = |keyword: &Keyword| {
        let prefixes =
            [Keyword::EXPLAIN, Keyword::ANALYZE, Keyword::VERBOSE, Keyword::DESCRIBE, Keyword::DESC];
        prefixes.contains(keyword)
    };
    match words.find(|(keyword, _)| !prefix(keyword)) {
        Some((Keyword::CASE | Keyword::IF | Keyword::WHILE, token)) => Err(super::near(text, token, None)),
        Some((Keyword::PREPARE, _)) => Err(SqlError::unsupported("PREPARE")),
        Some((Keyword::CREATE, _)) => {
            match words.find(|(k, _)| !matches!(k, Keyword::OR | Keyword::REPLACE | Keyword::ALTER)) {
                Some((Keyword::PROCEDURE, _)) => Err(SqlError::unsupported("CREATE PROCEDURE")),
                Some((Keyword::FUNCTION, _)) => Err(SqlError::unsupported("CREATE FUNCTION")),
                Some((Keyword::TRIGGER, _)) => Err(SqlError::unsupported("CREATE TRIGGER")),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// `EXCLUDE` in the frame of a window, which the parser does not know.
fn refuse_exclusion(text: &str, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let words = [Keyword::ROWS, Keyword::RANGE, Keyword::GROUPS];
    if !tokens.iter().any(|token| keyword(token).is_some_and(|keyword| words.contains(&keyword))) {
        return Ok(());
    }
    let words: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !super::is_blank(token)).collect();
    let found = words.windows(4).find(|part| {
        let [first, second, third, fourth] = part else { return false };
        let (second, third_word) = (keyword(second), keyword(third));
        let closes = |token: &TokenWithSpan| token.token == Token::RParen;
        keyword(first) == Some(Keyword::EXCLUDE)
            && match second {
                Some(Keyword::GROUP | Keyword::TIES) => closes(third),
                Some(Keyword::CURRENT) => third_word == Some(Keyword::ROW) && closes(fourth),
                Some(Keyword::NO) => matches!(third.token, Token::Word(_)) && closes(fourth),
                _ => false,
            }
    });
    match found {
        Some(part) => {
            let error = SqlError::unsupported("EXCLUDE in the frame of a window");
            Err(crate::source::Source::new(text).locate(error, part[0].span))
        }
        None => Ok(()),
    }
}

/// `TABLE t` as a statement is short for `SELECT * FROM t`.
fn spell_out_table(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let first = tokens.iter().position(|token| !super::is_blank(token));
    if let Some(first) = first.filter(|first| keyword(&tokens[*first]) == Some(Keyword::TABLE)) {
        let span = tokens[first].span;
        let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        tokens.splice(first..=first, words.map(|token| TokenWithSpan { token, span }));
    }
    tokens
}

/// Row locks as the parser knows them: FOR UPDATE instead of FOR NO KEY UPDATE, FOR SHARE instead of FOR KEY SHARE, which
/// lock no less, and `OF a.b` instead of `OF a, b`.
fn plain_locks(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while let Some(begin) = (at..tokens.len()).find(|i| keyword(&tokens[*i]) == Some(Keyword::FOR)) {
        at = begin + 1;
        let mut words = (at..tokens.len()).filter(|i| !super::is_blank(&tokens[*i]));
        let next: Vec<usize> = words.by_ref().take(3).collect();
        let said: Vec<Option<Keyword>> = next.iter().map(|i| keyword(&tokens[*i])).collect();
        let left_out = match said[..] {
            [Some(Keyword::NO), Some(Keyword::KEY), Some(Keyword::UPDATE)] => 2,
            [Some(Keyword::KEY), Some(Keyword::SHARE), ..] => 1,
            [Some(Keyword::UPDATE | Keyword::SHARE), ..] => 0,
            _ => continue,
        };
        let mode = next[left_out];
        let behind = (mode + 1..tokens.len()).filter(|i| !super::is_blank(&tokens[*i]));
        let mut behind: std::iter::Peekable<_> = behind.collect::<Vec<_>>().into_iter().peekable();
        if behind.next_if(|i| keyword(&tokens[*i]) == Some(Keyword::OF)).is_some() {
            // A name and a comma, again and again.
            while behind.next_if(|i| matches!(tokens[*i].token, Token::Word(_))).is_some() {
                let Some(comma) = behind.next_if(|i| tokens[*i].token == Token::Comma) else { break };
                tokens[comma].token = Token::Period;
            }
        }
        tokens.drain(next[0]..mode);
    }
    tokens
}

/// PostgreSQL writes `CREATE TABLE t (...) PARTITION BY ... WITH (...)`; the parser wants WITH
/// first. Moves it there.
fn options_first(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
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
