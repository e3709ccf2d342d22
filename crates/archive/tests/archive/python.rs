//! Other tools read an archive's files.

use std::path::Path;
use std::process::Command;

use albireo_archive::write;
use albireo_base::{Decimal, SqlType, Value};
use albireo_env::{Env, RealDisk};
use albireo_storage::LayoutChoice;

use crate::frozen::world_of_every_form;
use crate::shape::Shape;
use crate::world::World;

/// A table of all types: a full row and one of NULLs.
fn world() -> World {
    let types = [
        (SqlType::Integer, Value::Integer(-7)),
        (SqlType::Bool, Value::Bool(true)),
        (SqlType::SmallInt, Value::SmallInt(300)),
        (SqlType::BigInt, Value::BigInt(1 << 40)),
        (SqlType::Real, Value::Real(1.5)),
        (SqlType::Double, Value::Double(-0.25)),
        (
            SqlType::Decimal { precision: 12, scale: 2 },
            Value::Decimal(Decimal { unscaled: -12_345, scale: 2 }),
        ),
        (
            SqlType::Decimal { precision: 38, scale: 0 },
            Value::Decimal(Decimal { unscaled: 10i128.pow(30), scale: 0 }),
        ),
        (SqlType::Char(5), Value::from("äb")),
        (SqlType::Varchar(80), Value::Text("long ".repeat(6))),
        (SqlType::Text, Value::from("")),
        (SqlType::Bytea, Value::Bytea(vec![0, 255])),
        (SqlType::Date, Value::Date(1)),
        (SqlType::Time, Value::Time(1_000_001)),
        (SqlType::Timestamp, Value::Timestamp(86_400_000_000)),
        (SqlType::TimestampTz, Value::TimestampTz(1)),
        (SqlType::Uuid, Value::Uuid([7; 16])),
    ];
    let columns = types.iter().enumerate().map(|(i, (ty, _))| (*ty, i > 0)).collect();
    let shape = Shape { columns, layout: LayoutChoice::Columns, indexes: Vec::new(), forbidden: None };
    let mut world = World::new(shape, 2);
    world.insert(0, &types.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>());
    let nulls = [vec![Value::Integer(8)], vec![Value::Null; 16]].concat();
    world.insert(1, &nulls);
    world.insert(1, &nulls);
    world.delete(1, 0);
    world
}

const EXPECTED: &str = "\
table public.t: 2 rows
c0: int32 not null (integer)
c1: bool (boolean)
c2: int16 (smallint)
c3: int64 (bigint)
c4: float (real)
c5: double (double precision)
c6: decimal128(12, 2) (numeric(12,2))
c7: decimal128(38, 0) (numeric(38,0))
c8: string (character(5))
c9: string (character varying(80))
c10: string (text)
c11: binary (bytea)
c12: date32[day] (date)
c13: time64[us] (time without time zone)
c14: timestamp[us] (timestamp without time zone)
c15: timestamp[us, tz=UTC] (timestamp with time zone)
c16: fixed_size_binary[16] (uuid)
";

#[test]
fn pyarrow_reads_every_type_of_an_archive() {
    read(world(), "hot");
}

#[test]
fn pyarrow_reads_every_type_of_a_frozen_chunk() {
    let mut frozen = world();
    frozen.freeze(0);
    frozen.freeze(1);
    read(frozen, "frozen");
}

#[test]
fn pyarrow_reads_the_same_rows_of_columns_encoded_in_every_form() {
    let mut world = world_of_every_form();
    let Some(hot) = printed(&mut world, "forms-hot") else { return };
    world.freeze(0);
    let frozen = printed(&mut world, "forms-frozen").expect("pyarrow is there");
    assert_eq!(hot.lines().count(), frozen.lines().count());
    for (hot, frozen) in hot.lines().zip(frozen.lines()) {
        assert_eq!(hot, frozen);
    }
}

/// What the script prints of an archive; nothing without pyarrow.
fn printed(world: &mut World, name: &str) -> Option<String> {
    let (simulated, _) = Env::simulated(1);
    let env = Env { disk: std::sync::Arc::new(RealDisk), ..simulated };
    let directory = std::env::temp_dir().join(format!("albireo-archive-{name}-{}", std::process::id()));
    let (request, snapshot) = (world.request(), world.snapshot());
    write(&env, &directory.join("archive"), snapshot, request, None, |_| {}).expect("there is room");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_with_pyarrow.py");
    let python = std::env::var("ALBIREO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(&python).arg(script).arg(directory.join("archive")).arg("1").output();
    env.disk.remove_dir_all(&directory).expect("it is ours");
    let output = match output {
        Ok(output) if output.status.code() != Some(3) => output,
        _ => {
            eprintln!("SKIPPED: {python} has no pyarrow; name one that has in ALBIREO_PYTHON");
            return None;
        }
    };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    Some(out.into_owned())
}

fn read(mut world: World, name: &str) {
    let Some(out) = printed(&mut world, name) else { return };
    assert!(out.starts_with(EXPECTED), "{out}");
    let rows: Vec<&str> = out[EXPECTED.len()..].lines().collect();
    let full = "-7 | True | 300 | 1099511627776 | 1.5 | -0.25 | Decimal('-123.45') | \
                Decimal('1000000000000000000000000000000') | 'äb' | 'long long long long long long ' | '' | \
                b'\\x00\\xff' | datetime.date(1970, 1, 2) | datetime.time(0, 0, 1, 1) | \
                datetime.datetime(1970, 1, 2, 0, 0) | datetime.datetime(1970, 1, 1, 0, 0, 0, 1, ";
    assert!(rows[0].starts_with(full), "{}", rows[0]);
    assert!(rows[0].ends_with(&format!("b'{}'", "\\x07".repeat(16))), "{}", rows[0]);
    assert_eq!(rows[1], format!("8{}", " | None".repeat(16)));
}
