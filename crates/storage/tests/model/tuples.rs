//! Rows read, inserted and updated as tuples ([`Table::shape`]), against the model.

use albireo_base::{ColumnId, Decimal, SqlType, Tid, Value};
use albireo_storage::{
    FixedRow, HandleError, IndexKind, LayoutChoice, RowShape, ShapeRow, ShortKey, Table, TableError,
};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::shape::Shape;
use crate::world::World;

/// All columns, in another order than the table's.
type Whole = (&'static str, i32, Option<i16>, bool, i64, Option<i64>, &'static str);
const WHOLE: [&str; 7] = ["c4", "c0", "c1", "c6", "c2", "c5", "c3"];

/// A unique key, two columns that may be NULL, two texts, a DECIMAL.
fn shape(layout: LayoutChoice, forbidden: Option<u16>) -> Shape {
    Shape {
        columns: vec![
            (SqlType::Integer, false),
            (SqlType::SmallInt, true),
            (SqlType::BigInt, false),
            (SqlType::Varchar(10), false),
            (SqlType::Text, false),
            (SqlType::Decimal { precision: 18, scale: 2 }, true),
            (SqlType::Bool, false),
        ],
        layout,
        // A CHECK reads column 0, which then is in no index that would have updates looked at anyway.
        indexes: if forbidden.is_some() {
            Vec::new()
        } else {
            vec![
                (vec![ColumnId(0)], true, IndexKind::Ordered),
                (vec![ColumnId(1), ColumnId(2)], false, IndexKind::Hash),
            ]
        },
        forbidden,
    }
}

fn layouts() -> impl Strategy<Value = LayoutChoice> {
    let group = |columns: &[u16]| columns.iter().map(|&c| ColumnId(c)).collect::<Vec<_>>();
    let groups = LayoutChoice::Groups(vec![group(&[2, 5, 6]), group(&[0, 3])]);
    prop_oneof![Just(LayoutChoice::Columns), Just(LayoutChoice::Rows), Just(groups)]
}

fn decimal(unscaled: Option<i64>) -> Value {
    unscaled.map_or(Value::Null, |unscaled| Value::Decimal(Decimal { unscaled: unscaled.into(), scale: 2 }))
}

fn small(value: Option<i16>) -> Value {
    value.map_or(Value::Null, Value::SmallInt)
}

/// The model's row as the whole tuple.
fn tuple(row: &[Value]) -> (&str, i32, Option<i16>, bool, i64, Option<i64>, &str) {
    match row {
        [Value::Integer(a), b, Value::BigInt(c), Value::Text(d), Value::Text(e), f, Value::Bool(g)] => {
            let b = if let Value::SmallInt(b) = b { Some(*b) } else { None };
            let f = if let Value::Decimal(f) = f { Some(f.unscaled as i64) } else { None };
            (e, *a, b, *g, *c, f, d)
        }
        other => panic!("another shape: {other:?}"),
    }
}

impl World {
    fn insert_tuple(&mut self, row: Vec<Value>) {
        let whole = self.table.shape::<Whole>(&WHOLE).unwrap();
        let outcome = self.table.insert_row(&mut self.undo, &whole, tuple(&row));
        self.expect(row, None, outcome);
    }

    /// Updates the columns `names`; `row` is what it must be afterwards, `sees` what it was.
    fn update_tuple<V: FixedRow + PartialEq + std::fmt::Debug>(
        &mut self,
        tid: Tid,
        names: &[&str],
        row: Vec<Value>,
        sees: V,
        new: V,
    ) {
        let shape: RowShape<V> = self.table.shape(names).unwrap();
        let outcome = self.table.update_row(&mut self.undo, tid, &shape, |old| {
            assert_eq!(old, sees);
            new
        });
        self.expect(
            row,
            Some(tid),
            outcome.map(|now| {
                assert_eq!(now, new);
                tid
            }),
        );
    }

    fn update_some(&mut self, kind: u8, row: u16, pick: u16) {
        let Some(tid) = self.pick_row(row) else { return };
        let mut row = (*self.current[&tid]).clone();
        let fresh = self.shape.row(&[pick]);
        let ((_, a, b, g, c, f, _), (_, na, nb, ng, nc, nf, _)) = (tuple(&row), tuple(&fresh));
        match kind {
            // Of the primary key, so it goes through the index.
            0 => {
                (row[0], row[6]) = (Value::Integer(na), Value::Bool(ng));
                self.update_tuple(tid, &["c6", "c0"], row, (g, a), (ng, na));
            }
            1 => {
                (row[5], row[6]) = (decimal(nf), Value::Bool(ng));
                self.update_tuple(tid, &["c5", "c6"], row, (f, g), (nf, ng));
            }
            // Of an index over NULLs.
            2 => {
                row[1] = small(nb);
                self.update_tuple(tid, &["c1"], row, (b,), (nb,));
            }
            3 => {
                (row[5], row[6]) = (decimal(nf), Value::Bool(ng));
                self.update_tuple(tid, &["c6", "c5"], row, (g, f), (ng, nf));
            }
            4 => {
                row[6] = Value::Bool(ng);
                self.update_tuple(tid, &["c6"], row, (g,), (ng,));
            }
            _ => {
                row[5] = decimal(nf);
                (row[1], row[2]) = (small(nb), Value::BigInt(nc));
                self.update_tuple(tid, &["c5", "c2", "c1"], row, (f, c, b), (nf, nc, nb));
            }
        }
    }

    fn read_all(&self) {
        let whole = self.table.shape::<Whole>(&WHOLE).unwrap();
        let two = self.table.shape::<(Option<i64>, &'static str)>(&["c5", "c3"]).unwrap();
        for (&tid, row) in &self.current {
            let expected = tuple(row);
            let (e, a, b, g, c, f, d) = self.table.read(tid, &whole);
            assert_eq!((&*e, a, b, g, c, f, &*d), expected);
            assert_eq!(self.table.read(tid, &two), (expected.5, expected.6.into()));
        }
    }
}

random_tests! {
    #![cases(300)]

    #[test]
    fn rows_as_tuples_equal_the_model(
        layout in layouts(),
        forbidden in proptest::option::weighted(0.3, 0u16..40),
        steps in proptest::collection::vec((0u8..16, 0u8..6, any::<u16>(), 0u16..60), 1..150),
    ) {
        let mut world = World::new(shape(layout, forbidden), 128 << 20);
        for (step, kind, row, pick) in steps {
            match step {
                0..5 => world.insert_tuple(world.shape.row(&[pick, row % 60])),
                5..11 => world.update_some(kind, row, pick),
                11 => world.delete(row),
                12 => world.commit(),
                13 => world.abort(),
                14 => world.take_snapshot_of(row),
                _ => world.read_all(),
            }
        }
        world.read_all();
        world.check();
        world.abort();
        world.check();
        world.finish(true);
    }
}

#[test]
fn tuple_that_the_columns_do_not_take_changes_nothing() {
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows] {
        let mut world = World::new(shape(layout, None), 64 << 20);
        world.insert_tuple(world.shape.row(&[1]));
        let tid = *world.current.keys().next().unwrap();
        let whole = world.table.shape::<Whole>(&WHOLE).unwrap();
        let changes = world.undo.len();
        let mut insert = |d: &str, f| {
            world.table.insert_row(&mut world.undo, &whole, ("text", 99, None, true, 1, f, d)).unwrap_err()
        };
        assert!(matches!(insert("longer than ten", None), TableError::TooLong { column: ColumnId(3), .. }));
        assert!(matches!(insert("a\0", None), TableError::ZeroCharacter { column: ColumnId(3), .. }));
        let most = 10i64.pow(18) - 1;
        assert!(matches!(insert("d", Some(most + 1)), TableError::OutOfRange { column: ColumnId(5), .. }));
        let two = world.table.shape::<(bool, Option<i64>)>(&["c6", "c5"]).unwrap();
        let mut update = |tid, f| world.table.update_row(&mut world.undo, tid, &two, |_| (false, f));
        assert!(matches!(
            update(tid, Some(-most - 1)),
            Err(TableError::OutOfRange { column: ColumnId(5), .. })
        ));
        assert!(matches!(update(Tid(7), None), Err(TableError::NoRow { .. })));
        assert_eq!(world.undo.len(), changes);
        world.read_all();
        assert_eq!(world.table.row_count(), 1);
    }
}

#[test]
fn shape_names_columns_of_its_table_with_their_types() {
    fn refused<V: ShapeRow>(table: &Table, names: &[&str]) -> HandleError {
        table.shape::<V>(names).map(|_| ()).unwrap_err()
    }
    let world = World::new(shape(LayoutChoice::Columns, None), 64 << 20);
    let wrong = |error| matches!(error, HandleError::WrongType { name, .. } if name == "c1");
    assert!(wrong(refused::<(i16,)>(&world.table, &["c1"])), "it may be NULL");
    assert!(wrong(refused::<(i64, Option<i32>)>(&world.table, &["c2", "c1"])));
    assert!(wrong(refused::<(&'static str,)>(&world.table, &["c1"])));
    assert_eq!(refused::<(i16,)>(&world.table, &["c9"]), HandleError::NoColumn("c9".to_owned()));
    let not_null = refused::<(Option<i32>,)>(&world.table, &["c0"]);
    assert!(matches!(not_null, HandleError::WrongType { name, .. } if name == "c0"), "it is never NULL");
}

#[test]
#[should_panic(expected = "belongs to one table")]
fn shape_of_another_table_is_refused() {
    let mut world = World::new(shape(LayoutChoice::Columns, None), 64 << 20);
    world.insert_tuple(world.shape.row(&[1]));
    let other = World::new(shape(LayoutChoice::Columns, None), 64 << 20);
    let foreign = other.table.shape::<(bool,)>(&["c6"]).unwrap();
    let tid = *world.current.keys().next().unwrap();
    world.table.read(tid, &foreign);
}

#[test]
#[should_panic(expected = "belongs to one table")]
fn row_without_all_columns_is_not_inserted() {
    let mut world = World::new(shape(LayoutChoice::Columns, None), 64 << 20);
    let part = world.table.shape::<(bool,)>(&["c6"]).unwrap();
    _ = world.table.insert_row(&mut world.undo, &part, (true,));
}

#[test]
fn search_in_two_steps_finds_what_one_step_finds() {
    for (kind, form) in [
        (IndexKind::Hash, "dense array"),
        (IndexKind::Ordered, "b+tree"),
        (IndexKind::Bare, "b+tree of rows"),
    ] {
        let indexes = vec![(vec![ColumnId(0)], true, kind)];
        let columns = vec![(SqlType::Integer, false)];
        let mut world =
            World::new(Shape { columns, layout: LayoutChoice::Columns, indexes, forbidden: None }, 64 << 20);
        let row = world.table.shape::<(i32,)>(&["c0"]).unwrap();
        let index = world.table.index("i0").unwrap();
        let mut inserted = 0;
        // Dense keys and then some that no array has room for.
        for key in (0..6_000).chain((1..60).map(|key| key * 30_000_000)) {
            world.table.insert_row(&mut world.undo, &row, (key,)).unwrap();
            inserted += 1;
            // Entries move from a hash table to the array meanwhile, a few at a time.
            for earlier in [0, key / 2, key / 3 * 2] {
                let key = ShortKey::new().i32(earlier);
                assert_eq!(world.table.ask(index, key).tid(), world.table.find(index, key));
            }
        }
        let mut found = 0;
        for key in (-10..6_010).chain((1..70).map(|key| key * 30_000_000)) {
            let key = ShortKey::new().i32(key);
            let tid = world.table.find(index, key);
            assert_eq!(world.table.ask(index, key).tid(), tid, "{}", world.table.index_form(index));
            found += usize::from(tid.is_some());
        }
        assert_eq!(found, inserted);
        assert_eq!(world.table.index_form(index), form);
    }
}
