//! Calls whose arguments are borrowed and whose results are read where they lie: the same as calls by value.
#![allow(clippy::disallowed_methods, reason = "tests start threads")]

use std::sync::Arc;

use albireo::{Argument, ArgumentRef, Database, Decimal, Output, Reply, RoutineHandle, Value, ValueRef};

use crate::support::{run, small, state};

fn database() -> Database {
    let db = Database::in_memory(small()).unwrap();
    run(
        &db,
        "CREATE TABLE noted (id INTEGER PRIMARY KEY, note VARCHAR(300));
         CREATE FUNCTION echo(a smallint, b integer, c bigint, d double precision, e numeric, f text, g boolean,
             h date, i timestamp, j integer[], k text[], l uuid,
             OUT oa smallint, OUT ob integer, OUT oc bigint, OUT od double precision, OUT oe numeric(20,4),
             OUT of text, OUT og boolean, OUT oh date, OUT oi timestamp, OUT oj integer[], OUT ok text[])
         LANGUAGE plpgsql AS $$
         BEGIN
             oa := a; ob := b; oc := c; od := d; oe := e; of := f; og := g; oh := h; oi := i; oj := j; ok := k;
         END $$;
         CREATE FUNCTION shown(l uuid, OUT t uuid, OUT p interval) LANGUAGE plpgsql AS
             $$ BEGIN t := l; p := interval '1 day'; END $$;
         CREATE FUNCTION several(n integer) RETURNS TABLE (m integer, t text) LANGUAGE plpgsql AS
             $$ BEGIN FOR i IN 1 .. n LOOP m := i; t := 'x' || i; RETURN NEXT; END LOOP; END $$;
         CREATE FUNCTION note(p_id integer, p_note text, OUT r_length integer) LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO noted VALUES (p_id, p_note) RETURNING length(note) INTO r_length;
             IF r_length > 200 THEN RAISE EXCEPTION 'too long'; END IF;
         END $$;
         CREATE FUNCTION depth(n integer, OUT t text) LANGUAGE plpgsql AS $$
         BEGIN
             t := 'n' || n;
             IF n > 0 THEN t := t || depth(n - 1) || t; END IF;
         END $$",
    );
    db
}

/// The first row by value.
fn row(reply: &Reply) -> Vec<Argument> {
    let value = |column| match reply.get(0, column)? {
        Output::Value(value) => Some(Argument::Value(value.to_value())),
        Output::Array(items) => {
            assert_eq!(items.iter().count(), items.len());
            assert!(items.get(items.len()).is_none());
            Some(Argument::Array(items.iter().map(ValueRef::to_value).collect()))
        }
    };
    (0..).map_while(value).collect()
}

/// Calls by value, by reference and by the interpreter, and gives what all of them gave.
fn agreed(routine: &RoutineHandle, args: &[Argument]) -> Vec<Argument> {
    let borrowed: Vec<ArgumentRef<'_>> = args
        .iter()
        .map(|argument| match argument {
            Argument::Value(value) => value.into(),
            Argument::Array(items) => ArgumentRef::Values(items),
        })
        .collect();
    let by_value = routine.call(args).unwrap().remove(0);
    let interpreted = routine.clone().interpreted().call(args).unwrap().remove(0);
    assert_eq!(by_value, interpreted);
    // Twice, so that the second meets what the first has left.
    for _ in 0..2 {
        assert_eq!(row(&routine.invoke(&borrowed).unwrap()), by_value);
    }
    by_value
}

#[test]
fn values_of_every_type_come_back_as_they_went_in() {
    let db = database();
    let echo = db.routine("echo").unwrap();
    let uuid = || Argument::Value(Value::Uuid([7; 16]));
    let long = "long ".repeat(100);
    for text in
        ["", "short", "exactly sixty-four bytes are as many as lie in the room of a text", long.as_str()]
    {
        let args = [
            Argument::from(-3_i16),
            i32::MIN.into(),
            i64::MAX.into(),
            2.5.into(),
            Decimal::new(-12345, 4).into(),
            text.into(),
            true.into(),
            Value::Date(-1).into(),
            Value::Timestamp(1_000_001).into(),
            Argument::Array(vec![1.into(), Value::Null, 3.into()]),
            Argument::Array(vec![text.into(), Value::Null, "b".into()]),
            uuid(),
        ];
        assert_eq!(agreed(&echo, &args), args[..11]);
    }
    let mut nothing = vec![Argument::Value(Value::Null); 11];
    nothing.push(uuid());
    assert_eq!(agreed(&echo, &nothing), nothing[..11]);
}

#[test]
fn slices_and_narrow_numbers_go_in_without_values() {
    let db = database();
    let echo = db.routine("echo").unwrap();
    let null = ArgumentRef::from(ValueRef::Null);
    let mut args = [null; 12];
    let numbers: [i32; 3] = [5, -6, 7];
    (args[1], args[2], args[9]) = (4_i16.into(), 5_i32.into(), numbers[..].into());
    let reply = echo.invoke(&args).unwrap();
    let got = row(&reply);
    assert_eq!((&got[1], &got[2]), (&Argument::from(4_i32), &Argument::from(5_i64)));
    assert_eq!(got[9], Argument::Array(vec![5.into(), (-6).into(), 7.into()]));
    // Of another width they are converted.
    let (shorts, longs): ([i16; 2], [i64; 1]) = ([1, 2], [9]);
    args[9] = shorts[..].into();
    assert_eq!(row(&echo.invoke(&args).unwrap())[9], Argument::Array(vec![1.into(), 2.into()]));
    args[9] = longs[..].into();
    assert_eq!(row(&echo.invoke(&args).unwrap())[9], Argument::Array(vec![9.into()]));
    // What was read stays while others call.
    assert_eq!(row(&reply), got);
    args[9] = numbers[..0].into();
    assert_eq!(row(&echo.invoke(&args).unwrap())[9], Argument::Array(vec![]));
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_nothing_remains() {
    let db = database();
    let note = db.routine("note").unwrap();
    assert_eq!(note.invoke(&[1.into()]).map(drop).map_err(|error| state(&error)).unwrap_err(), "42883");
    let wrong = [ArgumentRef::from(1), ArgumentRef::Integers(&[1])];
    assert_eq!(note.invoke(&wrong).map(drop).map_err(|error| state(&error)).unwrap_err(), "42804");
    assert_eq!(
        note.invoke(&["x".into(), "y".into()]).map(drop).map_err(|error| state(&error)).unwrap_err(),
        "22P02"
    );
    assert_eq!(
        note.invoke(&[true.into(), "y".into()]).map(drop).map_err(|error| state(&error)).unwrap_err(),
        "42804"
    );
    let long = "z".repeat(250);
    assert_eq!(
        note.invoke(&[1.into(), long.as_str().into()]).map(drop).map_err(|error| state(&error)).unwrap_err(),
        "P0001"
    );
    let longer = "z".repeat(350);
    assert_eq!(
        note.invoke(&[1.into(), longer.as_str().into()])
            .map(drop)
            .map_err(|error| state(&error))
            .unwrap_err(),
        "22001"
    );
    // After errors it goes on, and nothing of the failed calls is seen.
    assert_eq!(row(&note.invoke(&[1.into(), "four".into()]).unwrap()), [Argument::from(4_i32)]);
    assert_eq!(state(&db.execute("INSERT INTO noted VALUES (1, '')").unwrap_err()), "23505");
}

#[test]
fn rows_of_sets_and_values_without_cells_are_copied() {
    let db = database();
    let several = db.routine("several").unwrap();
    let reply = several.invoke(&[3.into()]).unwrap();
    assert_eq!(reply.rows(), 3);
    assert!(matches!(reply.get(2, 1), Some(Output::Value(ValueRef::Text("x3")))));
    assert!(reply.get(3, 0).is_none() && reply.get(0, 2).is_none());
    assert_eq!(several.invoke(&[0.into()]).unwrap().rows(), 0);
    let shown = db.routine("shown").unwrap();
    let uuid = Value::Uuid([1; 16]);
    let got = row(&shown.invoke(&[(&uuid).into()]).unwrap());
    assert_eq!(got, [Argument::Value(uuid), Argument::from("1 day")]);
}

#[test]
fn calls_within_calls_have_memory_of_their_own() {
    let db = database();
    let depth = db.routine("depth").unwrap();
    let expected = |n: i32| (1..=n).fold("n0".to_owned(), |inner, n| format!("n{n}{inner}n{n}"));
    for n in [0, 3, 20, 3] {
        assert_eq!(agreed(&depth, &[n.into()]), [Argument::from(expected(n))]);
    }
}

#[test]
fn replies_outlive_the_routine_that_gave_them() {
    let db = database();
    let depth = db.routine("depth").unwrap();
    let reply = depth.invoke(&[2.into()]).unwrap();
    run(
        &db,
        "CREATE OR REPLACE FUNCTION depth(n integer, OUT t text) LANGUAGE plpgsql AS
              $$ BEGIN t := 'replaced'; END $$",
    );
    assert_eq!(row(&depth.invoke(&[2.into()]).unwrap()), [Argument::from("replaced")]);
    run(&db, "DROP FUNCTION depth");
    assert_eq!(depth.invoke(&[2.into()]).map(drop).map_err(|error| state(&error)).unwrap_err(), "42883");
    drop(db);
    assert_eq!(row(&reply), [Argument::from("n2n1n0n1n2")]);
}

#[test]
fn threads_call_one_routine_while_it_is_replaced() {
    let db = Arc::new(database());
    let depth = db.routine("depth").unwrap();
    let source = |word: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION depth(n integer, OUT t text) LANGUAGE plpgsql AS
             $$ BEGIN FOR i IN 1 .. n LOOP t := coalesce(t, '') || '{word}'; END LOOP; END $$"
        )
    };
    db.execute(&source("a")).unwrap();
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for n in 1..400 {
                        let got = row(&depth.invoke(&[n.into()]).unwrap());
                        let word = |letter: &str| vec![Argument::from(letter.repeat(n as usize))];
                        assert!(got == word("a") || got == word("b"), "{got:?}");
                    }
                })
            })
            .collect();
        for n in 0..40 {
            db.execute(&source(if n % 2 == 0 { "b" } else { "a" })).unwrap();
        }
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}
