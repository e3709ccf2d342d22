//! The five transactions of TPC-C.

use super::{class_in, lines};
use crate::classify::remarks;
use crate::library::Library;

const SCHEMA: &str = include_str!("../../../../bench/sql/tpcc_postgresql_schema.sql");
const PROCEDURES: &str = include_str!("../../../../bench/sql/tpcc_procedures.sql");

/// The tables, by warehouse, and the procedures.
fn tpcc() -> Library {
    let keys = [
        ("warehouse", "w_id"),
        ("district", "d_w_id"),
        ("customer", "c_w_id"),
        ("history", "h_w_id"),
        ("new_order", "no_w_id"),
        ("orders", "o_w_id"),
        ("order_line", "ol_w_id"),
        ("stock", "s_w_id"),
    ];
    let mut database = Library::new();
    for script in [SCHEMA, PROCEDURES] {
        for statement in albireo_sql::split(script).unwrap() {
            let key =
                keys.iter().find(|(table, _)| statement.text.contains(&format!("CREATE TABLE {table} (")));
            let sql = match key {
                Some((_, key)) => format!("{} PARTITION BY HASH ({key})", statement.text),
                None => statement.text.to_owned(),
            };
            database.run(&sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
        }
    }
    database
}

#[test]
fn each_has_the_class_that_its_specification_means() {
    let database = tpcc();
    let cases = [
        (
            "new_order",
            "class: probably partition of p_w_id; 6 of 7 accesses to partitioned tables are by it, \
             but line 44 changes \"stock\" by v_supply_w_id",
            "route: by argument 1 (p_w_id); over all partitions once it reaches another",
            "read-only: no, line 20 changes \"district\"",
        ),
        (
            "payment",
            "class: probably partition of p_w_id; 3 of 7 accesses to partitioned tables are by it, \
             but line 24 reads \"customer\" by p_c_w_id",
            "route: by argument 1 (p_w_id); over all partitions once it reaches another",
            "read-only: no, line 9 changes \"warehouse\"",
        ),
        (
            "order_status",
            "class: partition of p_w_id; all 5 accesses to partitioned tables are by it",
            "route: by argument 1 (p_w_id)",
            "read-only: yes, it writes nothing",
        ),
        (
            "delivery",
            "class: partition of p_w_id; all 6 accesses to partitioned tables are by it",
            "route: by argument 1 (p_w_id)",
            "read-only: no, line 19 changes \"new_order\"",
        ),
        (
            "stock_level",
            "class: partition of p_w_id; all 3 accesses to partitioned tables are by it",
            "route: by argument 1 (p_w_id)",
            "read-only: yes, it writes nothing",
        ),
    ];
    for (name, class, route, read_only) in cases {
        assert_eq!(lines(&database, name)[1..4], [class, route, read_only], "{name}");
        let class = class_in(&database, name);
        assert!(!class.one_shot.holds, "{name}");
        assert!(class.repeatable.holds, "{name}: {}", class.repeatable.why);
        assert_eq!(class.two_phase.holds, class.read_only.holds, "{name}: {}", class.two_phase.why);
        assert!(remarks(&super::routine(&database, name)).is_empty(), "{name}");
    }
    let stock = lines(&database, "stock_level");
    assert_eq!(
        stock[9..],
        [
            "line 5: SELECT",
            "  district: read, index district_pkey (d_w_id, d_id), partition by p_w_id",
            "line 7: SELECT",
            "  order_line: read, index order_line_pkey (ol_w_id, ol_d_id, range of ol_o_id), partition by p_w_id",
            "  stock: read, index stock_pkey (s_w_id, s_i_id), partition by p_w_id",
        ]
    );
}
