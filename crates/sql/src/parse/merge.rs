//! MERGE, of which the parser knows neither DO NOTHING, DEFAULT VALUES and joins in USING, nor all that after WITH.
//!
//! In the tree, DO NOTHING is an UPDATE that sets nothing or an INSERT of a row, DEFAULT VALUES are no rows of VALUES,
//! and a join in USING is one in parentheses.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr,
    Query, SetExpr, Statement, TableFactor, Values, With,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

type Result<T> = std::result::Result<T, ParserError>;

/// Whether the word stands among these tokens.
pub(super) fn occurs_in(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().any(|token| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::MERGE))
}

/// MERGE, after WITH or not, if it comes next.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement>> {
    if parser.parse_keyword(Keyword::MERGE) {
        return Some(merge(parser));
    }
    if !parser.peek_keyword(Keyword::WITH) {
        return None;
    }
    match parser.maybe_parse(with) {
        Ok(Some(with)) => Some(merge(parser).map(|merge| after(with, merge))),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    }
}

/// WITH and the word MERGE behind it.
fn with(parser: &mut Parser<'_>) -> Result<With> {
    parser.expect_keyword(Keyword::WITH)?;
    let with_token = AttachedToken(parser.get_current_token().clone());
    let recursive = parser.parse_keyword(Keyword::RECURSIVE);
    let cte_tables = parser.parse_comma_separated(Parser::parse_cte)?;
    parser.expect_keyword(Keyword::MERGE)?;
    Ok(With { with_token, recursive, cte_tables })
}

fn after(with: With, merge: Statement) -> Statement {
    Statement::Query(Box::new(Query {
        with: Some(with),
        body: Box::new(SetExpr::Merge(merge)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }))
}

/// What stands behind the word.
fn merge(parser: &mut Parser<'_>) -> Result<Statement> {
    let merge_token = AttachedToken(parser.get_current_token().clone());
    parser.expect_keyword(Keyword::INTO)?;
    let table = parser.parse_table_factor()?;
    parser.expect_keyword(Keyword::USING)?;
    let joined = parser.parse_table_and_joins()?;
    let source = match joined.joins.is_empty() {
        true => joined.relation,
        false => TableFactor::NestedJoin { table_with_joins: Box::new(joined), alias: None },
    };
    parser.expect_keyword(Keyword::ON)?;
    let on = Box::new(parser.parse_expr()?);
    let mut clauses = vec![clause(parser)?];
    while parser.peek_keyword(Keyword::WHEN) {
        clauses.push(clause(parser)?);
    }
    let (optimizer_hints, into, output) = (Vec::new(), true, None);
    Ok(Statement::Merge(Merge { merge_token, optimizer_hints, into, table, source, on, clauses, output }))
}

fn clause(parser: &mut Parser<'_>) -> Result<MergeClause> {
    parser.expect_keyword(Keyword::WHEN)?;
    let when_token = AttachedToken(parser.get_current_token().clone());
    let clause_kind = match parser.parse_keyword(Keyword::NOT) {
        true => MergeClauseKind::NotMatched,
        false => MergeClauseKind::Matched,
    };
    parser.expect_keyword(Keyword::MATCHED)?;
    let predicate = if parser.parse_keyword(Keyword::AND) { Some(parser.parse_expr()?) } else { None };
    parser.expect_keyword(Keyword::THEN)?;
    let action = match clause_kind {
        MergeClauseKind::Matched => of_matched(parser),
        _ => of_unmatched(parser),
    }?;
    Ok(MergeClause { when_token, clause_kind, predicate, action })
}

fn of_matched(parser: &mut Parser<'_>) -> Result<MergeAction> {
    if parser.parse_keyword(Keyword::DELETE) {
        return Ok(MergeAction::Delete { delete_token: AttachedToken(parser.get_current_token().clone()) });
    }
    let assignments = if parser.parse_keywords(&[Keyword::DO, Keyword::NOTHING]) {
        Vec::new()
    } else if parser.parse_keyword(Keyword::UPDATE) {
        parser.expect_keyword(Keyword::SET)?;
        parser.parse_comma_separated(Parser::parse_assignment)?
    } else {
        return parser.expected_ref("UPDATE, DELETE or DO NOTHING", parser.peek_token_ref());
    };
    let update_token = AttachedToken(parser.get_current_token().clone());
    let (update_predicate, delete_predicate) = (None, None);
    Ok(MergeAction::Update(MergeUpdateExpr { update_token, assignments, update_predicate, delete_predicate }))
}

fn of_unmatched(parser: &mut Parser<'_>) -> Result<MergeAction> {
    let (mut columns, mut kind) = (Vec::new(), MergeInsertKind::Row);
    if parser.parse_keyword(Keyword::INSERT) {
        columns = parser.parse_parenthesized_qualified_column_list(IsOptional::Optional, false)?;
        let mut rows = Vec::new();
        if !columns.is_empty() || !parser.parse_keywords(&[Keyword::DEFAULT, Keyword::VALUES]) {
            parser.expect_keyword(Keyword::VALUES)?;
            rows = parser.parse_values(false, false)?.rows;
        }
        kind = MergeInsertKind::Values(Values { explicit_row: false, value_keyword: false, rows });
    } else if !parser.parse_keywords(&[Keyword::DO, Keyword::NOTHING]) {
        return parser.expected_ref("INSERT or DO NOTHING", parser.peek_token_ref());
    }
    let insert_token = AttachedToken(parser.get_current_token().clone());
    let kind_token = insert_token.clone();
    Ok(MergeAction::Insert(MergeInsertExpr {
        insert_token,
        columns,
        kind_token,
        kind,
        insert_predicate: None,
    }))
}
