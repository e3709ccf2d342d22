//! One SELECT: its output columns and everything that can refer to them.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderBy, Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    WildcardAdditionalOptions,
};

use super::{Binder, Column, Columns, Mode, Relation, Scope, Tree, expr, label, output_name};
use crate::names;

/// One output column of a SELECT, as written or out of a wildcard.
pub(super) struct Output {
    /// PostgreSQL's name for it.
    pub(super) name: String,
    /// What it is, bound.
    pub(super) expr: Expr,
    /// The engine's name for it.
    pub(super) internal: String,
}

/// One entry of the select list.
enum Item {
    /// An expression.
    Column {
        /// PostgreSQL's name for it.
        name: String,
        expr: Expr,
        /// The entry as it stands, to keep if its name will do.
        written: Option<SelectItem>,
    },
    /// A wildcard over known columns; kept as written if all names are unique.
    Wildcard { columns: Vec<(String, Expr)>, written: SelectItem, plain: bool },
    /// A wildcard over unknown columns.
    Opaque(SelectItem),
}

impl Binder<'_> {
    /// Binds a SELECT with the ORDER BY behind it.
    pub(super) fn select(
        &mut self,
        select: &mut Select,
        order_by: Option<&mut OrderBy>,
        outer: Option<&Scope<'_>>,
        mode: Mode,
    ) -> Result<Columns, SqlError> {
        refuse_clauses(select)?;
        let around = std::mem::replace(&mut self.in_filter, false);
        let windows = std::mem::take(&mut self.windows);
        let defined = self.define_windows(&mut select.named_window);
        let columns = defined.and_then(|()| self.plain_select(select, order_by, outer, mode));
        self.in_filter = around;
        self.windows = windows;
        columns
    }

    fn plain_select(
        &mut self,
        select: &mut Select,
        order_by: Option<&mut OrderBy>,
        outer: Option<&Scope<'_>>,
        mode: Mode,
    ) -> Result<Columns, SqlError> {
        let tree = self.from(&mut select.from, outer)?;
        let scope = Scope { tree: &tree, parent: outer };
        let items = self.items(std::mem::take(&mut select.projection), &scope)?;
        let (projection, outputs, complete) = project(items, mode);
        select.projection = projection;

        if let Some(condition) = &mut select.selection {
            self.filter(condition, &scope)?;
        }
        self.group_by(&mut select.group_by, &outputs, complete, &scope, mode)?;
        if let Some(condition) = &mut select.having {
            self.filter(condition, &scope)?;
        }
        if let Some(condition) = &mut select.qualify {
            self.expr(condition, &scope)?;
        }
        expr::walk(self, &mut select.named_window, &scope)?;
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            self.distinct_on(exprs, &outputs, &scope, mode)?;
        }
        if let Some(order_by) = order_by {
            self.order_by(order_by, &outputs, complete, &scope, mode, select.distinct.as_ref())?;
        }
        let known = outputs.into_iter().map(|o| Column { name: o.name, internal: o.internal });
        Ok(Columns { known: known.collect(), complete })
    }

    fn items(&mut self, projection: Vec<SelectItem>, scope: &Scope<'_>) -> Result<Vec<Item>, SqlError> {
        projection.into_iter().map(|item| self.item(item, scope)).collect()
    }

    fn item(&mut self, item: SelectItem, scope: &Scope<'_>) -> Result<Item, SqlError> {
        match item {
            SelectItem::UnnamedExpr(mut expr) => {
                let name = label(&expr);
                self.expr(&mut expr, scope)?;
                let written = plain_column(&expr, &name).then(|| SelectItem::UnnamedExpr(expr.clone()));
                Ok(Item::Column { name, expr, written })
            }
            SelectItem::ExprWithAlias { mut expr, alias } => {
                self.expr(&mut expr, scope)?;
                let name = names::fold(&alias);
                let written = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                Ok(Item::Column { name, expr, written: Some(written) })
            }
            SelectItem::Wildcard(ref options) => {
                refuse_options(options)?;
                self.wildcard(item, scope.tree)
            }
            SelectItem::QualifiedWildcard(ref kind, ref options) => {
                refuse_options(options)?;
                let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(SqlError::unsupported("a wildcard after an expression"));
                };
                let name = names::qualified(name, self.source)?;
                let relation = self.find_relation(name.schema.as_deref(), &name.name, name.span, scope)?;
                Ok(relation_wildcard(relation, item))
            }
            SelectItem::ExprWithAliases { .. } => Err(SqlError::unsupported("several aliases of one column")),
        }
    }

    fn wildcard(&self, item: SelectItem, tree: &Tree) -> Result<Item, SqlError> {
        if tree.relations.is_empty() {
            let message = "SELECT * with no tables specified is not valid";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, item.span()));
        }
        if tree.open {
            return Ok(Item::Opaque(item));
        }
        let plain = tree.visible.iter().all(|column| !column.rewrite);
        let columns = tree.visible.iter().map(|column| (column.name.clone(), column.expr.clone())).collect();
        Ok(Item::Wildcard { columns, written: item, plain })
    }

    fn group_by(
        &mut self,
        group_by: &mut GroupByExpr,
        outputs: &[Output],
        complete: bool,
        scope: &Scope<'_>,
        mode: Mode,
    ) -> Result<(), SqlError> {
        let GroupByExpr::Expressions(exprs, _) = group_by else { return Ok(()) };
        // GROUP BY () is one group, as aggregates alone make it.
        let one_group = matches!(exprs.as_slice(), [Expr::Tuple(columns)] if columns.is_empty());
        if one_group && outputs.iter().any(|output| matches!(output.expr, Expr::Function(_))) {
            exprs.clear();
        }
        for expr in exprs {
            if let Some(position) = super::order::ordinal(expr) {
                self.check_position("GROUP BY", position, outputs.len(), complete, expr)?;
                continue;
            }
            self.group_expr(expr, outputs, scope, mode)?;
        }
        Ok(())
    }

    /// An input column if there is one of that name, else an output column, else an expression.
    fn group_expr(
        &mut self,
        expr: &mut Expr,
        outputs: &[Output],
        scope: &Scope<'_>,
        mode: Mode,
    ) -> Result<(), SqlError> {
        match expr {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                for inner in sets.iter_mut().flatten() {
                    self.group_expr(inner, outputs, scope, mode)?;
                }
                Ok(())
            }
            Expr::Tuple(inner) => {
                inner.iter_mut().try_for_each(|inner| self.group_expr(inner, outputs, scope, mode))
            }
            Expr::Identifier(ident) => {
                let name = names::fold(ident);
                if scope.tree.named(&name).next().is_some() {
                    return self.expr(expr, scope);
                }
                match self.output_named("GROUP BY", ident, outputs, scope)? {
                    Some(_) if mode == Mode::Expression => Ok(()),
                    Some(output) => {
                        *expr = output.expr.clone();
                        Ok(())
                    }
                    None => self.expr(expr, scope),
                }
            }
            _ => self.expr(expr, scope),
        }
    }

    fn distinct_on(
        &mut self,
        exprs: &mut [Expr],
        outputs: &[Output],
        scope: &Scope<'_>,
        mode: Mode,
    ) -> Result<(), SqlError> {
        for expr in exprs {
            let output = match expr {
                Expr::Identifier(ident) => self.output_named("DISTINCT ON", ident, outputs, scope)?,
                _ => None,
            };
            match output {
                Some(_) if mode == Mode::Expression => {}
                Some(output) => *expr = output.expr.clone(),
                None => self.expr(expr, scope)?,
            }
        }
        Ok(())
    }
}

fn relation_wildcard(relation: &Relation, written: SelectItem) -> Item {
    if !relation.columns.complete {
        return Item::Opaque(written);
    }
    let known = &relation.columns.known;
    let plain = known.iter().all(|column| column.name == column.internal);
    let columns = known.iter().map(|c| (c.name.clone(), relation.column_expr(c))).collect();
    Item::Wildcard { columns, written, plain }
}

/// Whether the engine would call `expr` by `name` of itself.
fn plain_column(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Identifier(ident) => names::fold(ident) == name,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|last| names::fold(last) == name),
        _ => false,
    }
}

/// The select list the engine gets, the output columns, and whether these are all.
fn project(items: Vec<Item>, mode: Mode) -> (Vec<SelectItem>, Vec<Output>, bool) {
    let complete = !items.iter().any(|item| matches!(item, Item::Opaque(_)));
    let spread = mode == Mode::Result || (mode == Mode::Derived && needs_spreading(&items));
    let mut list = Vec::with_capacity(items.len());
    let mut outputs: Vec<Output> = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Opaque(written) => list.push(written),
            Item::Wildcard { columns, written, .. } if !spread => {
                list.push(written);
                let of = |(name, expr): (String, Expr)| Output { internal: name.clone(), name, expr };
                outputs.extend(columns.into_iter().map(of));
            }
            Item::Wildcard { columns, .. } => {
                for (name, expr) in columns {
                    list.push(named(name, expr, None, &mut outputs, mode));
                }
            }
            Item::Column { name, expr, written } => list.push(named(name, expr, written, &mut outputs, mode)),
        }
    }
    (list, outputs, complete)
}

/// Whether a wildcard must be written out because two columns would have one name.
fn needs_spreading(items: &[Item]) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    for item in items {
        let names: Vec<&str> = match item {
            Item::Column { name, .. } => vec![name],
            Item::Wildcard { plain: false, .. } => return true,
            Item::Wildcard { columns, .. } => columns.iter().map(|(name, _)| name.as_str()).collect(),
            Item::Opaque(_) => continue,
        };
        for name in names {
            if seen.contains(&name) {
                return true;
            }
            seen.push(name);
        }
    }
    false
}

/// One entry of the select list under the name the engine shall know it by.
fn named(
    name: String,
    expr: Expr,
    written: Option<SelectItem>,
    outputs: &mut Vec<Output>,
    mode: Mode,
) -> SelectItem {
    let internal = match mode {
        Mode::Result => output_name(outputs.len()),
        Mode::Derived => unique(&name, outputs),
        Mode::Expression => name.clone(),
    };
    let item = match (mode, written) {
        (Mode::Expression, Some(written)) => written,
        (Mode::Expression, None) => SelectItem::UnnamedExpr(expr.clone()),
        (Mode::Derived, Some(written)) if internal == name => written,
        _ => SelectItem::ExprWithAlias { expr: expr.clone(), alias: names::quoted(&internal) },
    };
    outputs.push(Output { name, expr, internal });
    item
}

/// `name`, or with a number behind it if an output column has it already.
fn unique(name: &str, outputs: &[Output]) -> String {
    let taken = |candidate: &str| outputs.iter().any(|output| output.internal == candidate);
    if !taken(name) {
        return name.to_owned();
    }
    let numbered = (2_usize..).map(|n| format!("{name}#{n}")).find(|candidate| !taken(candidate));
    numbered.expect("names are never all taken")
}

fn refuse_options(options: &WildcardAdditionalOptions) -> Result<(), SqlError> {
    let plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    if plain { Ok(()) } else { Err(SqlError::unsupported("an option after *")) }
}

fn refuse_clauses(select: &Select) -> Result<(), SqlError> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT ... INTO")
            .with_hint("Create the table first, then INSERT INTO ... SELECT."));
    }
    let refused = [
        (select.top.is_some(), "TOP"),
        (select.exclude.is_some(), "EXCLUDE"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}
