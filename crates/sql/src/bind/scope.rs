//! Which names an expression can see.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::Span;

use super::Binder;
use crate::names;

/// One column of a FROM item or query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    /// Its name to the user.
    pub(crate) name: String,
    /// Its name to the engine; differs only where names are not unique.
    pub(crate) internal: String,
}

/// The columns of a FROM item or query.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Columns {
    pub(crate) known: Vec<Column>,
    /// Whether there are no others.
    pub(crate) complete: bool,
}

/// One FROM item that a qualified name can mean.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    /// The schema, if it was written and no alias hides it.
    pub(crate) schema: Option<String>,
    /// Its alias or name.
    pub(crate) name: String,
    /// The table's own name where an alias hides it.
    pub(crate) hidden: Option<String>,
    pub(crate) columns: Columns,
}

/// One column that a bare name can mean.
#[derive(Clone, Debug)]
pub(crate) struct Visible {
    pub(crate) name: String,
    /// How to write it without doubt.
    pub(crate) expr: Expr,
    /// Whether a bare name must be replaced by `expr`, because the engine would understand it
    /// otherwise or not at all.
    pub(crate) rewrite: bool,
    /// Its FROM item's name, for suggestions.
    pub(crate) relation: String,
}

/// What a FROM clause, or a part of it, offers.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tree {
    pub(crate) relations: Vec<Relation>,
    /// The columns of `*`, in its order.
    pub(crate) visible: Vec<Visible>,
    /// Whether there may be more columns.
    pub(crate) open: bool,
}

/// A FROM clause and those of the queries around it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    pub(crate) tree: &'s Tree,
    pub(crate) parent: Option<&'s Scope<'s>>,
}

/// What a column name turned out to mean.
pub(crate) enum Found {
    /// Leave it as written.
    AsWritten,
    /// Write this instead.
    Instead(Expr),
}

impl Columns {
    /// Nothing is known about them.
    pub(crate) fn unknown() -> Self {
        Self::default()
    }

    /// These and no others.
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> Self {
        let known = names.into_iter().map(|name| Column { internal: name.clone(), name }).collect();
        Self { known, complete: true }
    }
}

impl Relation {
    /// `alias.column` in identifiers that mean exactly that.
    pub(crate) fn column_expr(&self, column: &Column) -> Expr {
        let mut parts = Vec::with_capacity(3);
        parts.extend(self.schema.as_deref().map(names::quoted));
        parts.push(names::quoted(&self.name));
        parts.push(names::quoted(&column.internal));
        Expr::CompoundIdentifier(parts)
    }

    fn is_named(&self, schema: Option<&str>, name: &str) -> bool {
        let same_schema = match (schema, &self.schema) {
            (None, _) => true,
            (Some(wanted), Some(schema)) => wanted == schema,
            (Some(wanted), None) => wanted == crate::catalog::DEFAULT_SCHEMA && self.hidden.is_none(),
        };
        same_schema && self.name == name
    }
}

impl From<Relation> for Tree {
    fn from(relation: Relation) -> Self {
        let visible = relation.columns.known.iter().map(|column| Visible {
            name: column.name.clone(),
            expr: relation.column_expr(column),
            rewrite: column.name != column.internal,
            relation: relation.name.clone(),
        });
        let visible = visible.collect();
        Self { visible, open: !relation.columns.complete, relations: vec![relation] }
    }
}

impl Tree {
    /// This one and another one side by side.
    pub(crate) fn and(mut self, other: Tree) -> Tree {
        self.relations.extend(other.relations);
        self.visible.extend(other.visible);
        self.open |= other.open;
        self
    }

    /// The columns a bare name can mean.
    pub(crate) fn named<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t Visible> {
        self.visible.iter().filter(move |visible| visible.name == name)
    }
}

impl<'s> Scope<'s> {
    /// This scope and those around it, innermost first.
    pub(crate) fn chain(&'s self) -> impl Iterator<Item = &'s Scope<'s>> {
        std::iter::successors(Some(self), |scope| scope.parent)
    }
}

impl Binder<'_> {
    /// What a bare name means.
    pub(super) fn find_bare(&self, ident: &Ident, scope: &Scope<'_>) -> Result<Found, SqlError> {
        let name = names::fold(ident);
        for (depth, scope) in scope.chain().enumerate() {
            let mut matches = scope.tree.named(&name);
            if depth > 0 && matches.next().is_some() {
                self.met_outer.set(true);
            }
            let mut matches = scope.tree.named(&name);
            match (matches.next(), matches.next()) {
                (Some(_), Some(_)) => {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    let candidates = scope.tree.named(&name).map(|v| format!("\"{}.{name}\"", v.relation));
                    let candidates: Vec<_> = candidates.collect();
                    return Err(self
                        .error(SqlState::AMBIGUOUS_COLUMN, message, ident.span)
                        .with_hint(format!("Qualify it: {}.", candidates.join(" or "))));
                }
                (Some(found), None) if found.rewrite => return Ok(Found::Instead(found.expr.clone())),
                (Some(_), None) => return Ok(Found::AsWritten),
                (None, _) if scope.tree.open => return Ok(Found::AsWritten),
                (None, _) => {}
            }
        }
        if scope.chain().any(|s| s.tree.relations.iter().any(|r| r.is_named(None, &name))) {
            let error = SqlError::unsupported(format!("a reference to the whole row of \"{name}\""));
            return Err(self.source.locate(error, ident.span));
        }
        Err(self.undefined_column(&name, &name, ident.span, scope, None))
    }

    /// What `table.column` or `schema.table.column` means.
    pub(super) fn find_qualified(&self, parts: &[Ident], scope: &Scope<'_>) -> Result<Found, SqlError> {
        let (schema, table, column) = match parts {
            [table, column] => (None, table, column),
            [schema, table, column] => (Some(names::fold(schema)), table, column),
            _ => return Ok(Found::AsWritten),
        };
        let (table_name, name) = (names::fold(table), names::fold(column));
        let relation = self.find_relation(schema.as_deref(), &table_name, parts[0].span, scope)?;
        if !scope.tree.relations.iter().any(|near| std::ptr::eq(near, relation)) {
            self.met_outer.set(true);
        }
        match relation.columns.known.iter().find(|c| c.name == name) {
            Some(found) if found.internal == found.name => {
                let twice = relation.columns.known.iter().filter(|c| c.name == name).count() > 1;
                if twice {
                    let message = format!("column reference \"{name}\" is ambiguous");
                    return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, parts[0].span));
                }
                Ok(Found::AsWritten)
            }
            Some(found) => Ok(Found::Instead(relation.column_expr(found))),
            None if !relation.columns.complete => Ok(Found::AsWritten),
            None => {
                let shown = format!("{table_name}.{name}");
                Err(self.undefined_column(&shown, &name, parts[0].span, scope, Some(&table_name)))
            }
        }
    }

    /// The FROM item with this name, in this scope or around it.
    pub(super) fn find_relation<'s>(
        &self,
        schema: Option<&str>,
        name: &str,
        span: Span,
        scope: &'s Scope<'s>,
    ) -> Result<&'s Relation, SqlError> {
        let mut relations = scope.chain().flat_map(|scope| &scope.tree.relations);
        if let Some(found) = relations.find(|relation| relation.is_named(schema, name)) {
            return Ok(found);
        }
        let mut relations = scope.chain().flat_map(|scope| &scope.tree.relations);
        if let Some(hiding) = relations.find(|relation| relation.hidden.as_deref() == Some(name)) {
            let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
            let hint = format!("Perhaps you meant to reference the table alias \"{}\".", hiding.name);
            return Err(self.error(SqlState::UNDEFINED_TABLE, message, span).with_hint(hint));
        }
        let message = format!("missing FROM-clause entry for table \"{name}\"");
        let error = self.error(SqlState::UNDEFINED_TABLE, message, span);
        let known = scope.chain().flat_map(|scope| scope.tree.relations.iter().map(|r| r.name.as_str()));
        Err(match names::closest(name, known) {
            Some(near) => error.with_hint(format!("Perhaps you meant the table \"{near}\".")),
            None => error,
        })
    }

    /// 42703; `shown` is the name as written, `only` the FROM item it must be of.
    fn undefined_column(
        &self,
        shown: &str,
        name: &str,
        span: Span,
        scope: &Scope<'_>,
        only: Option<&str>,
    ) -> SqlError {
        let quoted = if only.is_some() { shown.to_owned() } else { format!("\"{shown}\"") };
        let message = format!("column {quoted} does not exist");
        let error = self.error(SqlState::UNDEFINED_COLUMN, message, span);
        let visible = || {
            let all = scope.chain().flat_map(|scope| &scope.tree.relations);
            let wanted = all.filter(move |relation| only.is_none_or(|only| relation.name == only));
            wanted.flat_map(|r| r.columns.known.iter().map(move |c| (r.name.as_str(), c.name.as_str())))
        };
        let Some(near) = names::closest(name, visible().map(|(_, column)| column)) else { return error };
        match visible().find(|(_, column)| *column == near) {
            Some((relation, column)) => {
                error.with_hint(format!("Perhaps you meant to reference the column \"{relation}.{column}\"."))
            }
            None => error,
        }
    }
}
