//! Whole routines: their parameters and results.

use super::super::program::{Argument, Node, Program, Source};
use super::super::types::{Kind, Ty, any_type, value};
use super::query::plain;
use super::{Around, Helper, HelperResult, Maker, Scope, Shape, Variable};

impl Maker {
    pub(super) fn program(&mut self) -> Program {
        let mut routines = Vec::new();
        for n in 0..self.rng.weighted(&[45, 35, 20]) {
            let (source, helper) = self.helper(n);
            routines.push(source);
            self.helpers.push(helper);
        }
        let (main, kinds, outs) = self.main();
        let is_procedure = main.head.starts_with("CREATE PROCEDURE");
        routines.push(main);
        let mut arguments = Vec::new();
        for kind in kinds {
            let value = (!self.rng.chance(12)).then(|| value(&mut self.rng, kind));
            arguments.push(Argument { kind, value });
        }
        let tables = self.tables.clone();
        Program {
            tables: tables.iter().map(|table| table.create()).collect(),
            dumps: tables.iter().map(|table| table.dump()).collect(),
            rows: tables.iter().flat_map(|table| table.rows(&mut self.rng)).collect(),
            routines,
            name: "main".to_owned(),
            arguments,
            is_procedure,
            outs: if is_procedure { outs } else { 0 },
        }
    }

    /// Parameters in scope, as their text and kinds.
    fn parameters(&mut self, most: usize) -> (Vec<String>, Vec<Kind>) {
        let (mut texts, mut kinds) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.below(most + 1) {
            let kind = any_type(&mut self.rng).kind();
            let name = self.fresh("p");
            texts.push(format!("{name} {}", parameter(kind)));
            kinds.push(kind);
            // PL/pgSQL lets parameters be assigned to.
            let writable = self.rng.chance(40);
            self.declare(Variable { name, ty: plain(kind), writable });
        }
        (texts, kinds)
    }

    /// OUT and INOUT parameters in scope: texts, those that also go in, and their types.
    fn outs(&mut self) -> Vec<(String, Ty, bool)> {
        let mut all = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let kind = any_type(&mut self.rng).kind();
            let name = self.fresh("o");
            let both = self.rng.chance(40);
            let mode = if both { "INOUT" } else { "OUT" };
            all.push((format!("{mode} {name} {}", parameter(kind)), plain(kind), both));
            self.declare(Variable { name, ty: plain(kind), writable: true });
        }
        all
    }

    fn begin(&mut self, budget: usize) {
        self.budget = budget;
        self.rounds = 1;
        self.scopes = vec![Scope { label: None, ..Scope::default() }];
        self.around = vec![Around { label: Some("body".to_owned()), is_loop: false }];
    }

    /// Declarations and statements.
    fn body(&mut self, variables: usize) -> (Vec<Node>, Vec<Node>) {
        self.scopes.push(Scope { label: Some("body".to_owned()), ..Scope::default() });
        self.declarations.push(Vec::new());
        for _ in 0..variables {
            self.variable();
        }
        let mut statements = Vec::new();
        while self.budget > 0 {
            self.budget -= 1;
            statements.push(self.guarded(4));
        }
        if matches!(self.shape, Shape::Set(_) | Shape::Table(_)) {
            for _ in 0..self.rng.below(3) {
                statements.push(self.next());
            }
        }
        if self.rng.chance(70) {
            statements.push(Node::line(self.report()));
        }
        if !matches!(self.shape, Shape::Nothing | Shape::Outs) || self.rng.chance(20) {
            statements.push(self.returned());
        }
        self.scopes.pop();
        (self.declarations.pop().unwrap_or_default(), statements)
    }

    fn helper(&mut self, n: usize) -> (Source, Helper) {
        let name = format!("helper{n}");
        let budget = self.rng.between(1, 5) as usize;
        self.begin(budget);
        let (mut texts, parameters) = self.parameters(2);
        let (head, result) = match self.rng.below(4) {
            0 | 1 => {
                let kind = any_type(&mut self.rng).kind();
                self.shape = Shape::Value(plain(kind));
                let head = format!("FUNCTION {name}({}) RETURNS {}", texts.join(", "), parameter(kind));
                (head, HelperResult::Value(kind))
            }
            2 => {
                self.shape = Shape::Outs;
                let outs = self.outs();
                texts.extend(outs.iter().map(|(text, ..)| text.clone()));
                let outs = outs.into_iter().map(|(_, ty, both)| (ty, both)).collect();
                (format!("PROCEDURE {name}({})", texts.join(", ")), HelperResult::Outs(outs))
            }
            _ => {
                let columns = self.table_columns();
                let head = format!("FUNCTION {name}({}) RETURNS {}", texts.join(", "), table_of(&columns));
                self.shape = Shape::Table(columns.clone());
                // What it changed, the query around would see or not.
                self.read_only = true;
                (head, HelperResult::Rows(columns))
            }
        };
        let variables = self.rng.below(3);
        let (declarations, statements) = self.body(variables);
        self.read_only = false;
        let source = Source { head: format!("CREATE {head}"), declarations, statements };
        (source, Helper { name, parameters, result })
    }

    /// Columns of RETURNS TABLE, which are variables.
    fn table_columns(&mut self) -> Vec<(String, Kind)> {
        let mut columns = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let (name, kind) = (self.fresh("o"), self.any_kind());
            self.declare(Variable { name: name.clone(), ty: plain(kind), writable: true });
            columns.push((name, kind));
        }
        columns
    }

    fn main(&mut self) -> (Source, Vec<Kind>, usize) {
        let budget = self.rng.between(3, 18) as usize;
        self.begin(budget);
        let (mut texts, mut kinds) = self.parameters(4);
        let mut only_out = 0;
        let head = match self.rng.below(16) {
            0..=5 => {
                let ty = plain(any_type(&mut self.rng).kind());
                self.shape = Shape::Value(ty);
                format!("FUNCTION main({}) RETURNS {}", texts.join(", "), parameter(ty.kind()))
            }
            6 => {
                self.shape = Shape::Nothing;
                format!("FUNCTION main({}) RETURNS void", texts.join(", "))
            }
            what @ 7..=10 => {
                self.shape = Shape::Outs;
                let outs = self.outs();
                for (text, ty, both) in outs {
                    texts.push(text);
                    if both {
                        kinds.push(ty.kind());
                    } else {
                        only_out += 1;
                    }
                }
                // CALL has an argument for each; functions for those that go in.
                let word = if what < 9 { "FUNCTION" } else { "PROCEDURE" };
                texts.sort_by_key(|text| text.starts_with("OUT "));
                format!("{word} main({})", texts.join(", "))
            }
            11 => {
                self.shape = Shape::Nothing;
                format!("PROCEDURE main({})", texts.join(", "))
            }
            12 => {
                let kind = self.any_kind();
                self.shape = Shape::Set(kind);
                format!("FUNCTION main({}) RETURNS SETOF {}", texts.join(", "), parameter(kind))
            }
            13 => {
                let table = self.rng.below(self.tables.len());
                self.shape = Shape::RowOf(table);
                format!("FUNCTION main({}) RETURNS {}", texts.join(", "), self.tables[table].name)
            }
            _ => {
                let columns = self.table_columns();
                let head = format!("FUNCTION main({}) RETURNS {}", texts.join(", "), table_of(&columns));
                self.shape = Shape::Table(columns);
                head
            }
        };
        let variables = self.rng.between(2, 7) as usize;
        let (declarations, statements) = self.body(variables);
        (Source { head: format!("CREATE {head}"), declarations, statements }, kinds, only_out)
    }
}

/// The type of a parameter or result, which has no modifier.
fn parameter(kind: Kind) -> &'static str {
    match kind {
        Kind::Char => "char",
        other => other.sql(),
    }
}

fn table_of(columns: &[(String, Kind)]) -> String {
    let columns: Vec<String> =
        columns.iter().map(|(name, kind)| format!("{name} {}", parameter(*kind))).collect();
    format!("TABLE ({})", columns.join(", "))
}
