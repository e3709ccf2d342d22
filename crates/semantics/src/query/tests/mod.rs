//! Queries against what PostgreSQL 15 says of them.
//!
//! The case files have lines `statement => columns with types` or `statement => !SQLSTATE@position message`;
//! `record.py` asks PostgreSQL. `differences.list` has those where we say something else, with what we say.

mod sound;

use std::collections::HashMap;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::Statement;
use albireo_sql::source::Source;
use albireo_sql::{Catalog, plan_ddl};

use super::tree::{Body, Item, Select};
use super::{SelectPlan, bind_select};
use crate::expr::{Expr, ExprKind, NoNames};

const CASES: [&str; 5] = [
    include_str!("joins.txt"),
    include_str!("groups.txt"),
    include_str!("windows.txt"),
    include_str!("queries.txt"),
    include_str!("values.txt"),
];

fn catalog() -> Catalog {
    let text = include_str!("schema.sql");
    let statements = albireo_sql::parse(text).expect("the schema is SQL");
    statements.iter().fold(Catalog::new(), |catalog, statement| {
        let plan = plan_ddl(&catalog, statement, text).expect("the schema can be made");
        catalog.with(&plan.changes)
    })
}

fn bound(catalog: &Catalog, text: &str) -> Result<SelectPlan, SqlError> {
    let statement = albireo_sql::parse_one(text)?;
    let Statement::Query(query) = &statement else { panic!("{text} is no query") };
    bind_select(catalog, query, &mut NoNames::new(Source::new(text)))
}

/// What we say; without a position if PostgreSQL gives none.
fn says(catalog: &Catalog, text: &str, expected: &str) -> String {
    let plan = match bound(catalog, text) {
        Ok(plan) => plan,
        Err(error) => {
            let place = match error.position() {
                Some(at) if expected.split(' ').next().is_none_or(|state| state.contains('@')) => {
                    format!("@{at}")
                }
                _ => String::new(),
            };
            return format!("!{}{place} {}", error.state(), error.message());
        }
    };
    if let Err(why) = sound::check(&plan) {
        return format!("unsound: {why}");
    }
    let columns: Vec<String> = plan.columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    if columns.is_empty() { "nothing".to_owned() } else { columns.join(", ") }
}

/// A result with the names that we have for types.
fn plain(expected: &str) -> String {
    if expected.starts_with('!') {
        return expected.to_owned();
    }
    let mut text = expected.replace("character varying", "text").replace("bpchar", "character");
    while let Some(at) = text.find('(') {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at..end, "");
    }
    text
}

fn cases(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).map(|line| {
        let (text, expected) = line.split_once(" => ").expect("a case has an arrow");
        (text, expected)
    })
}

#[test]
fn query_has_the_columns_or_the_error_postgres_gives_it() {
    let catalog = catalog();
    let mut differences: HashMap<&str, &str> = cases(include_str!("differences.list")).collect();
    let mut wrong = Vec::new();
    for (text, expected) in CASES.into_iter().flat_map(cases) {
        let expected = plain(expected);
        let ours = differences.remove(text);
        let found = says(&catalog, text, ours.unwrap_or(&expected));
        if ours == Some(expected.as_str()) || found != ours.unwrap_or(&expected) {
            wrong.push(format!("{text} => {expected}\n    we say {found}"));
        }
    }
    wrong.extend(differences.into_keys().map(|text| format!("{text} is no case")));
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// The one SELECT that a query is.
fn select_of(text: &str) -> Select {
    let plan = bound(&catalog(), text).expect("it is bound");
    match &plan.query.body {
        Body::Select(select) => (**select).clone(),
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn relation_knows_which_others_it_refers_to() {
    let requires = |text: &str| -> Vec<u64> {
        let items = select_of(text).from.items;
        let of = |item: &Item| match item {
            Item::One { requires, .. } | Item::Left { requires, .. } | Item::Full { requires, .. } => {
                *requires
            }
        };
        items.iter().map(of).collect()
    };
    assert_eq!(requires("SELECT 1 FROM x, y, LATERAL (SELECT y.k) l"), [0, 0, 0b10]);
    assert_eq!(requires("SELECT 1 FROM x, LATERAL (SELECT (SELECT max(x.a + y.k) FROM y)) l"), [0, 0b1]);
    assert_eq!(requires("SELECT 1 FROM x, generate_series(1, 2) g, unnest(ARRAY[g, x.a]) u"), [0, 0, 0b11]);
    assert_eq!(requires("SELECT 1 FROM x LEFT JOIN LATERAL (SELECT x.a) l ON true"), [0, 0b1]);
    let full = "SELECT 1 FROM e, x FULL JOIN y ON x.id = y.id";
    assert_eq!(requires(full), [0, 0]);
    let inside = "SELECT 1 FROM e, LATERAL (SELECT e.pay) l FULL JOIN y ON true";
    assert_eq!(requires(inside), [0, 0b1]);
}

#[test]
fn grouping_sets_are_products_and_keys_are_columns_of_the_groups() {
    let sets = |text: &str| select_of(text).grouping.and_then(|grouping| grouping.sets);
    let list = |sets: &[&[usize]]| Some(sets.iter().map(|set| set.to_vec()).collect::<Vec<_>>());
    let of = |clause: &str| sets(&format!("SELECT count(*) FROM x GROUP BY {clause}"));
    assert_eq!(of("a, k"), None);
    assert_eq!(of("GROUPING SETS ((a, k))"), None);
    assert_eq!(of("ROLLUP (a, k)"), list(&[&[0, 1], &[0], &[]]));
    assert_eq!(of("CUBE (a, k)"), list(&[&[0, 1], &[0], &[1], &[]]));
    assert_eq!(of("k, ROLLUP (a, k)"), list(&[&[0, 1], &[0, 1], &[0]]));
    assert_eq!(of("ROLLUP (a), ROLLUP (k)"), list(&[&[0, 1], &[0], &[1], &[]]));
    assert_eq!(of("ROLLUP ((a, k), w)"), list(&[&[0, 1, 2], &[0, 1], &[]]));
    assert_eq!(of("GROUPING SETS (a, (), (k, a), ROLLUP (w))"), list(&[&[0], &[], &[1, 0], &[2], &[]]));
    let select =
        select_of("SELECT a, a + 1, grouping(k), c FROM t, (SELECT 1 AS k) s GROUP BY id, k, a + 1, a");
    let column = |expr: &Expr| match &expr.kind {
        ExprKind::Column(column) => (column.relation, column.column),
        other => panic!("{other:?}"),
    };
    let outputs: Vec<(u16, u16)> = select.outputs.iter().map(column).collect();
    assert_eq!(outputs, [(2, 3), (2, 2), (2, 4), (0, 3)]);
    let aggregates = select.grouping.expect("it has groups").aggregates;
    assert_eq!(aggregates[0].args.iter().map(column).collect::<Vec<_>>(), [(2, 1)]);
}

/// Binds a text that may be no query at all; what comes of it must be sound.
fn try_bind(catalog: &Catalog, text: &str) {
    let Ok(Statement::Query(query)) = albireo_sql::parse_one(text) else { return };
    if let Ok(plan) = bind_select(catalog, &query, &mut NoNames::new(Source::new(text))) {
        sound::check(&plan).unwrap_or_else(|why| panic!("{text}: {why}"));
    }
}

#[test]
fn query_with_a_word_missing_or_moved_is_bound_soundly_or_refused() {
    let catalog = catalog();
    for (text, _) in CASES.into_iter().flat_map(cases) {
        let words: Vec<&str> = text.split(' ').collect();
        for at in 0..words.len() {
            let mut fewer = words.clone();
            let word = fewer.remove(at);
            try_bind(&catalog, &fewer.join(" "));
            fewer.insert(words.len() - 1 - at, word);
            try_bind(&catalog, &fewer.join(" "));
        }
    }
}

// The stack of a test has 2 MiB.
#[test]
fn query_as_deep_as_the_parser_allows_is_bound() {
    let catalog = catalog();
    let forms = [
        ("(SELECT max(a) FROM x WHERE a = ", "1", ")"),
        ("(SELECT count(*) FROM x GROUP BY a HAVING a > ", "1", " LIMIT 1)"),
        ("(SELECT sum(a) OVER (ORDER BY k) FROM x, LATERAL (SELECT x.a + ", "1", ") l LIMIT 1)"),
        ("(WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + ", "1", " FROM r) SELECT n FROM r)"),
        ("(SELECT 1 UNION SELECT ", "1", ")"),
        ("(", "a", ")"),
        ("CASE WHEN a = 1 THEN 1 ELSE ", "2", " END"),
    ];
    for (before, inner, after) in forms {
        let mut bound_once = 0;
        for depth in 1..60 {
            let text = format!("SELECT {}{inner}{} FROM x", before.repeat(depth), after.repeat(depth));
            if albireo_sql::parse_one(&text).is_ok() {
                let text = format!("{text} ORDER BY 1");
                bound(&catalog, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
                bound_once += 1;
            }
        }
        assert!(bound_once > 3, "{before} is refused too early");
    }
}

#[test]
fn large_query_is_bound() {
    let catalog = catalog();
    let list = |count: usize, item: &dyn Fn(usize) -> String, by: &str| -> String {
        (0..count).map(item).collect::<Vec<_>>().join(by)
    };
    let plus = |n: usize| format!("a + {n}");
    let keys = list(1500, &plus, ", ");
    let wide = format!(
        "SELECT {keys} FROM x GROUP BY {keys} ORDER BY {}",
        list(1500, &|n| (n + 1).to_string(), ", ")
    );
    let sums = format!("SELECT coalesce({}) FROM x", list(8000, &|n| format!("sum(a + {n})"), ", "));
    let windows =
        format!("SELECT {} FROM x", list(1500, &|n| format!("sum(a) OVER (ORDER BY k + {n})"), ", "));
    let unions = list(1900, &|n| format!("SELECT {n}"), " UNION ALL ");
    let mixed = list(900, &|n| format!("SELECT {n} UNION SELECT '{n}'"), " EXCEPT ");
    let values = format!("VALUES {}", list(20_000, &|n| format!("({n}, '{n}')"), ", "));
    let ctes = format!(
        "WITH {} SELECT * FROM c99",
        list(
            100,
            &|n| match n {
                0 => "c0 AS (SELECT 1)".to_owned(),
                n => format!("c{n} AS (SELECT * FROM c{})", n - 1),
            },
            ", "
        )
    );
    for text in [wide, sums, windows, unions, mixed, values, ctes] {
        let plan = bound(&catalog, &text).unwrap_or_else(|error| panic!("{error}: {:.80}", text));
        sound::check(&plan).expect("it is sound");
    }
    let many = format!("SELECT {} FROM x", list(1665, &plus, ", "));
    assert_eq!(says(&catalog, &many, ""), "!54011 target lists can have at most 1664 entries");
}

/// Texts of each kind of list and nesting, each of some thousand nodes.
fn large() -> [String; 5] {
    let list = |count: usize, separator: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(separator)
    };
    let nested = |n: usize| {
        format!("SELECT * FROM ({}SELECT * FROM x{}) q{n}", "SELECT * FROM (".repeat(9), ") q".repeat(9))
    };
    [
        format!("SELECT a FROM x WHERE a IN ({})", list(3000, ",", &|n| n.to_string())),
        format!("SELECT a FROM x WHERE {}", list(1000, " AND ", &|n| format!("a <> {n}"))),
        format!("VALUES {}", list(1000, ",", &|n| format!("({n}, 'x')"))),
        list(1000, " UNION ALL ", &|n| format!("SELECT a + {n} FROM x")),
        list(100, " UNION ALL ", &nested),
    ]
}

#[test]
fn binding_ends_with_its_statement_and_at_its_memory_limit() {
    use albireo_base::budget::Budget;
    use std::sync::atomic::{AtomicU32, Ordering};
    let catalog = catalog();
    for text in large() {
        let looks = AtomicU32::new(0);
        let cancelled = move || match looks.fetch_add(1, Ordering::Relaxed) {
            0..4 => Ok(()),
            _ => Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")),
        };
        for (limit, interrupt, state) in [
            (usize::MAX, Box::new(cancelled) as Box<_>, SqlState::QUERY_CANCELED),
            (1 << 18, Box::new(|| Ok(())) as Box<_>, SqlState::OUT_OF_MEMORY),
        ] {
            // Only binding is to end.
            let statement = albireo_sql::parse_one(&text).expect("it is SQL");
            let Statement::Query(query) = &statement else { panic!("{text} is no query") };
            let bind = || bind_select(&catalog, query, &mut NoNames::new(Source::new(&text))).map(drop);
            assert_eq!(bind(), Ok(()), "{text}");
            let error = Budget::new(limit, interrupt).within(bind).expect_err(&text);
            assert_eq!((error.state(), error.position()), (state, None), "{text}: {error}");
        }
    }
}

#[test]
fn query_of_with_knows_how_often_it_is_used_and_what_is_said_of_it() {
    let ctes = |text: &str| -> Vec<(u32, Option<bool>)> {
        let plan = bound(&catalog(), text).expect("it is bound");
        plan.query.ctes.iter().map(|cte| (cte.uses, cte.materialized)).collect()
    };
    assert_eq!(ctes("WITH c AS (SELECT a FROM x) SELECT 1 FROM c"), [(1, None)]);
    assert_eq!(ctes("WITH c AS (SELECT a FROM x), d AS (SELECT 1) SELECT 1 FROM c, c AS e"), [(2, None)]);
    assert_eq!(
        ctes(
            "WITH c AS MATERIALIZED (SELECT a FROM x), d AS NOT MATERIALIZED (SELECT a FROM c) SELECT (SELECT max(a) FROM d) FROM c, d"
        ),
        [(2, Some(true)), (2, Some(false))]
    );
}
