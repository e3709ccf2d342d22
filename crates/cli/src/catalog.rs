//! Shows a table of the catalog as the shell describes it.

use crate::sql::{Index, Table, TableColumn};
use albireo_base::ColumnId;
use albireo_sql::catalog::IndexRole;
use albireo_sql::{IndexKind, Layout, TableDef};

/// The table `def`, which has `rows` live rows.
pub fn table(def: &TableDef, rows: u64) -> Table {
    let name = |column: &ColumnId| def.columns[column.index()].name.clone();
    let names = |columns: &[ColumnId]| columns.iter().map(name).collect::<Vec<_>>();
    let columns = def.columns.iter().map(|column| TableColumn {
        name: column.name.clone(),
        ty: column.ty,
        nullable: column.nullable,
        default: column.default.as_ref().map(|default| default.text.clone()),
    });
    let indexes = def.indexes.iter().map(|index| Index {
        name: index.name.clone(),
        method: match index.kind {
            IndexKind::Hash => "hash".to_owned(),
            IndexKind::Ordered => "ordered".to_owned(),
        },
        options: index.options().map(str::to_owned),
        columns: names(&index.columns),
        unique: index.unique,
        primary: index.role == IndexRole::PrimaryKey,
    });
    Table {
        schema: def.schema.clone(),
        name: def.name.clone(),
        rows,
        columns: columns.collect(),
        indexes: indexes.collect(),
        checks: def.checks.iter().map(|check| check.expr.text.clone()).collect(),
        partition_by: def.partition_by.as_ref().map(name),
        layout: match &def.layout {
            Layout::Column => "column".to_owned(),
            Layout::Row => "row".to_owned(),
            Layout::Groups(groups) => {
                let groups: Vec<String> = groups.iter().map(|group| names(group).join(" ")).collect();
                format!("groups: {}", groups.join("; "))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_base::SqlType;
    use albireo_sql::{Catalog, parse_one, plan_ddl};

    #[test]
    fn table_of_the_catalog_keeps_everything_that_describe_shows() {
        let text = "create table stock (w int, i int, note varchar(10) default 'none', check (i > 0), \
                    primary key (w, i)) partition by hash (w) with (layout = 'row')";
        let catalog = Catalog::new();
        let plan = plan_ddl(&catalog, &parse_one(text).unwrap(), text).unwrap();
        let catalog = catalog.with(&plan.changes);
        let stock = table(catalog.tables().next().unwrap(), 7);
        let note = TableColumn {
            name: "note".to_owned(),
            ty: SqlType::Varchar(10),
            nullable: true,
            default: Some("'none'".to_owned()),
        };
        assert_eq!((stock.schema.as_str(), stock.name.as_str(), stock.rows), ("public", "stock", 7));
        assert_eq!(stock.columns[2], note);
        assert!(!stock.columns[0].nullable);
        let key = &stock.indexes[0];
        assert!(key.primary && key.unique);
        assert_eq!(key.columns, ["w", "i"]);
        assert_eq!(stock.checks, ["i > 0"]);
        assert_eq!((stock.partition_by.as_deref(), stock.layout.as_str()), (Some("w"), "row"));
    }
}
