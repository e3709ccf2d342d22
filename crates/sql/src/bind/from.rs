//! The FROM clause: which tables and columns it offers.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};
use sqlparser::tokenizer::Span;

use super::scope::Visible;
use super::{Binder, Column, Columns, Mode, Relation, Scope, Tree, expr, rewrite};
use crate::ddl::is_system_schema;
use crate::names;

/// Which side of a join may be filled up with NULLs, as far as USING cares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// Values are the left side's.
    Left,
    /// Values are the right side's.
    Right,
    /// Values are those of whichever side has them.
    Either,
    /// Only the left side's columns come out.
    LeftOnly,
    /// Only the right side's columns come out.
    RightOnly,
}

impl Binder<'_> {
    /// Binds a FROM clause.
    pub(super) fn from(
        &mut self,
        from: &mut [TableWithJoins],
        outer: Option<&Scope<'_>>,
    ) -> Result<Tree, SqlError> {
        let mut tree = Tree::default();
        for item in from {
            let next = self.joined(item, outer, &tree)?;
            self.check_names(&tree, &next)?;
            tree = tree.and(next);
        }
        Ok(tree)
    }

    /// 42712 if two FROM items have one name.
    fn check_names(&self, left: &Tree, right: &Tree) -> Result<(), SqlError> {
        for relation in &right.relations {
            let same = |other: &&Relation| other.name == relation.name && other.schema == relation.schema;
            if left.relations.iter().any(|other| same(&other)) {
                let message = format!("table name \"{}\" specified more than once", relation.name);
                return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message));
            }
        }
        Ok(())
    }

    /// One item with its joins. `before` is what LATERAL can see besides.
    fn joined(
        &mut self,
        item: &mut TableWithJoins,
        outer: Option<&Scope<'_>>,
        before: &Tree,
    ) -> Result<Tree, SqlError> {
        let mut tree = self.factor(&mut item.relation, outer, before)?;
        for join in &mut item.joins {
            let seen = before.clone().and(tree.clone());
            let right = self.factor(&mut join.relation, outer, &seen)?;
            self.check_names(&seen, &right)?;
            tree = self.join(tree, right, join, outer)?;
        }
        Ok(tree)
    }

    fn join(
        &mut self,
        left: Tree,
        right: Tree,
        join: &mut Join,
        outer: Option<&Scope<'_>>,
    ) -> Result<Tree, SqlError> {
        let (sides, constraint) = match &mut join.join_operator {
            JoinOperator::Join(c)
            | JoinOperator::Inner(c)
            | JoinOperator::Left(c)
            | JoinOperator::LeftOuter(c)
            | JoinOperator::CrossJoin(c)
            | JoinOperator::StraightJoin(c) => (Sides::Left, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (Sides::Right, c),
            JoinOperator::FullOuter(c) => (Sides::Either, c),
            JoinOperator::Semi(c)
            | JoinOperator::LeftSemi(c)
            | JoinOperator::Anti(c)
            | JoinOperator::LeftAnti(c) => (Sides::LeftOnly, c),
            JoinOperator::RightSemi(c) | JoinOperator::RightAnti(c) => (Sides::RightOnly, c),
            _ => return Err(SqlError::unsupported("this kind of join")),
        };
        let merged = match constraint {
            JoinConstraint::On(condition) => {
                let both = left.clone().and(right.clone());
                self.expr(condition, &Scope { tree: &both, parent: outer })?;
                Vec::new()
            }
            JoinConstraint::None => Vec::new(),
            JoinConstraint::Using(columns) => {
                let columns = columns.iter().filter_map(|c| c.0.first()?.as_ident());
                columns.map(|ident| (names::fold(ident), ident.span)).collect()
            }
            JoinConstraint::Natural => common_names(&left, &right),
        };
        self.merge(left, right, sides, &merged)
    }

    /// The join of two trees with the columns of USING merged, in the order `*` has them.
    fn merge(
        &mut self,
        left: Tree,
        right: Tree,
        sides: Sides,
        using: &[(String, Span)],
    ) -> Result<Tree, SqlError> {
        let mut visible = Vec::with_capacity(left.visible.len() + right.visible.len());
        for (name, span) in using {
            let l = self.using_side(&left, name, *span, "left")?;
            let r = self.using_side(&right, name, *span, "right")?;
            let (Some(l), Some(r)) = (l, r) else { continue };
            let expr = match sides {
                Sides::Left | Sides::LeftOnly => l.expr.clone(),
                Sides::Right | Sides::RightOnly => r.expr.clone(),
                Sides::Either => rewrite::call("coalesce", [l.expr.clone(), r.expr.clone()]),
            };
            visible.push(Visible { name: name.clone(), expr, rewrite: true, relation: l.relation.clone() });
        }
        let merged = |column: &Visible| using.iter().any(|(name, _)| *name == column.name);
        let rest = |tree: &Tree| tree.visible.iter().filter(|c| !merged(c)).cloned().collect::<Vec<_>>();
        if sides != Sides::RightOnly {
            visible.extend(rest(&left));
        }
        if sides != Sides::LeftOnly {
            visible.extend(rest(&right));
        }
        let open = left.open || right.open;
        let mut relations = left.relations;
        relations.extend(right.relations);
        Ok(Tree { relations, visible, open })
    }

    fn using_side<'t>(
        &self,
        tree: &'t Tree,
        name: &'t str,
        span: Span,
        side: &str,
    ) -> Result<Option<&'t Visible>, SqlError> {
        let mut matches = tree.named(name);
        match (matches.next(), matches.next()) {
            (Some(_), Some(_)) => {
                let message = format!("common column name \"{name}\" appears more than once in {side} table");
                Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, span))
            }
            (Some(found), None) => Ok(Some(found)),
            (None, _) if tree.open => Ok(None),
            (None, _) => {
                let message =
                    format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                Err(self.error(SqlState::UNDEFINED_COLUMN, message, span))
            }
        }
    }

    fn factor(
        &mut self,
        factor: &mut TableFactor,
        outer: Option<&Scope<'_>>,
        before: &Tree,
    ) -> Result<Tree, SqlError> {
        let lateral_scope = Scope { tree: before, parent: outer };
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => self.table(name, alias).map(Tree::from),
            // Their options, `delim = ';'`, are no expressions; `olap` reads them.
            TableFactor::Table { name, alias, args: Some(_), .. } if reads_file(name) => {
                Ok(opaque(alias.as_ref(), name.0.last().and_then(|part| part.as_ident())))
            }
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                expr::walk(self, &mut args.args, &lateral_scope)?;
                Ok(opaque(alias.as_ref(), name.0.last().and_then(|part| part.as_ident())))
            }
            TableFactor::Function { name, args, alias, .. } => {
                expr::walk(self, args, &lateral_scope)?;
                Ok(opaque(alias.as_ref(), name.0.last().and_then(|part| part.as_ident())))
            }
            TableFactor::UNNEST { alias, array_exprs, .. } => {
                expr::walk(self, array_exprs, &lateral_scope)?;
                Ok(opaque(alias.as_ref(), Some(&Ident::new("unnest"))))
            }
            TableFactor::TableFunction { expr, alias } => {
                self.expr(expr, &lateral_scope)?;
                Ok(opaque(alias.as_ref(), None))
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let parent = if *lateral { Some(&lateral_scope) } else { outer };
                let columns = self.query(subquery, parent, Mode::Derived)?;
                let alias = alias.get_or_insert_with(|| table_alias(self.name_unnamed()));
                let name = names::fold(&alias.name);
                let columns = self.rename(columns, alias, &name)?;
                Ok(Relation { schema: None, name, hidden: None, columns }.into())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let tree = self.joined(table_with_joins, outer, before)?;
                let Some(alias) = alias else { return Ok(tree) };
                let known = tree.visible.iter().map(|v| v.name.clone());
                let columns = Columns { complete: !tree.open, ..Columns::of(known) };
                let name = names::fold(&alias.name);
                let columns = self.rename(columns, alias, &name)?;
                Ok(Relation { schema: None, name, hidden: None, columns }.into())
            }
            TableFactor::Pivot { .. } => Err(SqlError::unsupported("PIVOT")),
            TableFactor::Unpivot { .. } => Err(SqlError::unsupported("UNPIVOT")),
            TableFactor::MatchRecognize { .. } => Err(SqlError::unsupported("MATCH_RECOGNIZE")),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                Err(SqlError::unsupported("JSON_TABLE"))
            }
            TableFactor::XmlTable { .. } => Err(SqlError::unsupported("XMLTABLE")),
            TableFactor::SemanticView { .. } => Err(SqlError::unsupported("SEMANTIC_VIEW")),
        }
    }

    /// A WITH query, a file, or a table of the catalog.
    fn table(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>) -> Result<Relation, SqlError> {
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident().filter(|ident| ident.quote_style == Some('\''))
        {
            let path = ident.value.clone();
            return self.file(path, name, alias);
        }
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident().filter(|ident| ident.quote_style.is_none())
            && names::is_reserved(&ident.value)
        {
            let message = format!("syntax error at or near \"{}\"", ident.value);
            return Err(self.error(SqlState::SYNTAX_ERROR, message, ident.span));
        }
        let written = names::qualified(name, self.source)?;
        let cte = self.ctes.iter().rev().find(|(cte, _)| written.schema.is_none() && *cte == written.name);
        let columns = if let Some((_, columns)) = cte {
            columns.clone()
        } else if written.schema.as_deref().is_some_and(is_system_schema) {
            Columns::unknown()
        } else {
            let table = self.catalog.resolve_table(&written, self.source).map_err(|error| {
                let file_like = written.name.contains(['.', '/']) && error.hint().is_none();
                if file_like { error.with_hint("Write a file's name in single quotes.") } else { error }
            })?;
            let columns = Columns::of(table.columns.iter().map(|column| column.name.clone()));
            let id = table.id;
            self.use_table(id);
            columns
        };
        match alias {
            Some(alias) => {
                let name = names::fold(&alias.name);
                let columns = self.rename(columns, alias, &written.name)?;
                Ok(Relation { schema: None, name, hidden: Some(written.name), columns })
            }
            None => Ok(Relation { schema: written.schema, name: written.name, hidden: None, columns }),
        }
    }

    /// `FROM 'file.parquet'`: a table of that name to the engine, called by the file's stem.
    fn file(
        &mut self,
        path: String,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
    ) -> Result<Relation, SqlError> {
        self.use_file(&path);
        *name = ObjectName::from(vec![names::quoted(&path)]);
        let alias = alias.get_or_insert_with(|| {
            let file = path.rsplit(['/', '\\']).next().unwrap_or(&path);
            let stem = file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(file);
            table_alias(stem.to_owned())
        });
        let name = names::fold(&alias.name);
        let columns = self.rename(Columns::unknown(), alias, &name)?;
        Ok(Relation { schema: None, name, hidden: None, columns })
    }

    /// Applies `AS t(a, b)`: the first columns get other names. The rest is written out, because
    /// the engine wants all or none.
    pub(super) fn rename(
        &self,
        mut columns: Columns,
        alias: &mut TableAlias,
        table: &str,
    ) -> Result<Columns, SqlError> {
        if alias.columns.is_empty() {
            return Ok(columns);
        }
        let given = alias.columns.iter().map(|column| names::fold(&column.name));
        let given: Vec<Column> = given.map(|name| Column { internal: name.clone(), name }).collect();
        if !columns.complete {
            return Ok(Columns { known: given, complete: false });
        }
        if given.len() > columns.known.len() {
            let message = format!(
                "table \"{table}\" has {} columns available but {} columns specified",
                columns.known.len(),
                given.len()
            );
            return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, alias.name.span));
        }
        for column in &columns.known[given.len()..] {
            let name = names::quoted(&column.internal);
            alias.columns.push(TableAliasColumnDef { name, data_type: None });
        }
        for (column, given) in columns.known.iter_mut().zip(given) {
            *column = given;
        }
        Ok(columns)
    }
}

/// Whether a function in FROM reads a file.
fn reads_file(name: &ObjectName) -> bool {
    const FUNCTIONS: [&str; 6] =
        ["read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson", "read_parquet"];
    let [part] = name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| FUNCTIONS.iter().any(|known| ident.value.eq_ignore_ascii_case(known)))
}

/// An alias without columns.
pub(crate) fn table_alias(name: String) -> TableAlias {
    TableAlias { explicit: true, name: names::quoted(&name), columns: Vec::new(), at: None }
}

/// A FROM item of unknown columns.
fn opaque(alias: Option<&TableAlias>, function: Option<&Ident>) -> Tree {
    let name = alias.map(|alias| &alias.name).or(function).map_or_else(String::new, names::fold);
    let given = alias.into_iter().flat_map(|alias| &alias.columns).map(|column| names::fold(&column.name));
    let columns = Columns { complete: false, ..Columns::of(given) };
    Relation { schema: None, name, hidden: None, columns }.into()
}

/// The columns of NATURAL JOIN, in the left table's order.
fn common_names(left: &Tree, right: &Tree) -> Vec<(String, Span)> {
    let both = left.visible.iter().filter(|column| right.named(&column.name).next().is_some());
    both.map(|column| (column.name.clone(), Span::empty())).collect()
}
