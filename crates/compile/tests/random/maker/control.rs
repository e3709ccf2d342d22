//! Control flow: branches, loops, blocks, handlers.

use super::super::program::Node;
use super::super::types::{Item, Kind, Ty, any_item, any_type};
use super::{Around, Maker, Mode, Record, Scope, Variable};

const CONDITIONS: [&str; 16] = [
    "OTHERS",
    "OTHERS",
    "OTHERS",
    "division_by_zero",
    "numeric_value_out_of_range",
    "division_by_zero OR numeric_value_out_of_range",
    "unique_violation",
    "not_null_violation",
    "data_exception",
    "integrity_constraint_violation",
    "no_data_found OR too_many_rows",
    "raise_exception",
    "SQLSTATE '12345' OR SQLSTATE 'A1B2C'",
    "assert_failure",
    "invalid_text_representation OR string_data_right_truncation",
    "case_not_found OR null_value_not_allowed",
];

impl Maker {
    /// Statements in a scope of their own.
    pub(super) fn branch(&mut self, most: usize, depth: usize) -> Vec<Node> {
        self.scopes.push(Scope::default());
        let mut all = Vec::new();
        for _ in 0..self.rng.between(1, most as i64) {
            if self.budget == 0 && !all.is_empty() {
                break;
            }
            self.budget = self.budget.saturating_sub(1);
            all.push(self.statement(depth));
        }
        self.scopes.pop();
        all
    }

    /// A statement whose errors often go no further.
    pub(super) fn guarded(&mut self, depth: usize) -> Node {
        let records = self.records().len();
        let statement = self.statement(depth);
        // A record that may not have been assigned has no columns.
        if self.records().len() != records || !self.rng.chance(60) {
            return statement;
        }
        if matches!(&statement, Node::Line(text) if text.starts_with("RETURN") || text == "NULL;") {
            return statement;
        }
        let handler = vec![Node::line("RAISE NOTICE 'failed % %', SQLSTATE, SQLERRM;")];
        let parts =
            vec![("BEGIN".to_owned(), vec![statement]), ("EXCEPTION WHEN OTHERS THEN".to_owned(), handler)];
        Node::Parts(parts, "END;".to_owned())
    }

    pub(super) fn statement(&mut self, depth: usize) -> Node {
        if depth == 0 || self.budget == 0 {
            return self.simple();
        }
        let loops = self.rounds <= 24;
        match self.rng.below(100) {
            0..=9 => self.branches(depth),
            10..=14 => self.case(depth),
            15..=20 if loops => self.range(depth),
            21..=23 if loops => self.counted_loop(depth),
            24..=26 if loops => self.each(depth),
            27..=33 if loops => self.query_loop(depth),
            34..=45 => self.block(depth),
            46..=49 => match self.jump() {
                Some(jump) => jump,
                None => self.simple(),
            },
            _ => self.simple(),
        }
    }

    fn branches(&mut self, depth: usize) -> Node {
        let condition = match self.rng.chance(20) {
            true => self.in_mode(Mode::Safe, |maker| maker.expr(Kind::Bool, 2)),
            false => self.expr(Kind::Bool, 3),
        };
        let mut parts = vec![(format!("IF {} THEN", closed(&condition.text)), self.branch(3, depth - 1))];
        if self.rng.chance(30) {
            let condition = self.expr(Kind::Bool, 2);
            parts.push((format!("ELSIF {} THEN", closed(&condition.text)), self.branch(2, depth - 1)));
        }
        if self.rng.chance(50) {
            parts.push(("ELSE".to_owned(), self.branch(3, depth - 1)));
        }
        Node::Parts(parts, "END IF;".to_owned())
    }

    fn case(&mut self, depth: usize) -> Node {
        let mut parts = Vec::new();
        let of = self.rng.pick(&[Kind::Int, Kind::Text, Kind::Small, Kind::Num, Kind::Bool]);
        let simple = self.rng.chance(60);
        let head = match simple {
            true => format!("CASE {}", closed(&self.expr(of, 2).text)),
            false => "CASE".to_owned(),
        };
        parts.push((head, Vec::new()));
        for _ in 0..self.rng.between(1, 3) {
            let when = match simple {
                true => {
                    let (a, b) = (self.literal(of), self.leaf(of));
                    match self.rng.chance(50) {
                        true => a.text,
                        false => format!("{}, {}", a.text, b.text),
                    }
                }
                false => closed(&self.expr(Kind::Bool, 2).text),
            };
            parts.push((format!("WHEN {when} THEN"), self.branch(2, depth - 1)));
        }
        if self.rng.chance(75) {
            parts.push(("ELSE".to_owned(), self.branch(2, depth - 1)));
        }
        Node::Parts(parts, "END CASE;".to_owned())
    }

    /// The label of a loop or block, and its text before it.
    fn label(&mut self) -> (Option<String>, String) {
        if !self.rng.chance(30) {
            return (None, String::new());
        }
        let label = self.fresh("l");
        let text = format!("<<{label}>> ");
        (Some(label), text)
    }

    /// The statements of a loop of so many rounds.
    fn repeated(&mut self, label: &Option<String>, rounds: usize, depth: usize) -> Vec<Node> {
        let before = self.rounds;
        self.rounds *= rounds;
        self.around.push(Around { label: label.clone(), is_loop: true });
        let statements = self.branch(4, depth - 1);
        self.around.pop();
        self.rounds = before;
        statements
    }

    /// A scope with variables.
    fn scope(&mut self, label: &Option<String>, variables: Vec<Variable>) {
        self.scopes.push(Scope { label: label.clone(), variables, records: Vec::new() });
    }

    fn range(&mut self, depth: usize) -> Node {
        let (label, before) = self.label();
        let reverse = self.rng.chance(30);
        let (low, high) = match self.rng.below(8) {
            0 => ("2147483645".to_owned(), "2147483647".to_owned()),
            1 => ("-2147483648".to_owned(), "-2147483646".to_owned()),
            2 => (self.small_integer().text, self.small_integer().text),
            3 => {
                let value = self.small_integer().text;
                (value.clone(), format!("{value} + 3"))
            }
            4 => {
                // NULL, perhaps.
                let value = self.changing(Kind::Int).text;
                (format!("GREATEST({value}, 0) % 5"), "4".to_owned())
            }
            5 => {
                let value = self.changing(Kind::Num);
                (format!("{} % 3", value.text), "3".to_owned())
            }
            _ => {
                let low = self.rng.between(-1, 4);
                (low.to_string(), (low + self.rng.between(-1, 5)).to_string())
            }
        };
        let by = match self.rng.below(10) {
            0..=6 => String::new(),
            7 | 8 => format!(" BY {}", self.rng.pick(&["1", "2", "3", "2147483647"])),
            _ => format!(" BY {}", self.small_integer().text),
        };
        let name = match self.rng.chance(85) {
            true => self.fresh("i"),
            // It hides a variable of that name.
            false => {
                let all: Vec<Variable> =
                    self.variables().into_iter().filter(|v| !v.name.contains('.')).collect();
                if all.is_empty() { self.fresh("i") } else { self.rng.pick(&all).name }
            }
        };
        let (from, to) = if reverse { (high, low) } else { (low, high) };
        let reverse = if reverse { "REVERSE " } else { "" };
        let head = format!("{before}FOR {name} IN {reverse}{from}..{to}{by} LOOP");
        // PostgreSQL lets it be assigned to, which changes this round only.
        let variable = Variable { name, ty: Ty::Int, writable: self.rng.chance(15) };
        self.scope(&label, vec![variable]);
        let statements = self.repeated(&label, 6, depth);
        self.scopes.pop();
        Node::Parts(vec![(head, statements)], "END LOOP;".to_owned())
    }

    /// WHILE and LOOP, with a counter.
    fn counted_loop(&mut self, depth: usize) -> Node {
        let (label, before) = self.label();
        let counter = self.fresh("n");
        self.declared(format!("{counter} integer;"));
        let most = self.rng.between(1, 5);
        let (head, exit) = match self.rng.chance(60) {
            true => {
                let condition = self.expr(Kind::Bool, 2);
                (format!("{before}WHILE {counter} < {most} AND {} LOOP", condition.text), None)
            }
            false => {
                let exit = format!("EXIT WHEN {counter} > {most};");
                (format!("{before}LOOP"), Some(exit))
            }
        };
        // It is the block's, so the label of the loop does not name it.
        self.scope(&None, vec![Variable { name: counter.clone(), ty: Ty::Int, writable: false }]);
        let mut statements = self.repeated(&label, 5, depth);
        self.scopes.pop();
        statements.splice(0..0, exit.map(Node::Line));
        // Not to be taken away, or it never ends.
        let head = format!("{head} {counter} := {counter} + 1;");
        let start = format!("{counter} := 0;");
        Node::Parts(vec![(format!("{start} {head}"), statements)], "END LOOP;".to_owned())
    }

    fn each(&mut self, depth: usize) -> Node {
        let (label, before) = self.label();
        let item = any_item(&mut self.rng);
        let targets = self.writable(|ty| ty.kind() == item.kind());
        if targets.is_empty() {
            return self.simple();
        }
        let target = self.rng.pick(&targets).name;
        let array = match self.array_of(item) {
            Some(array) if self.rng.chance(70) => {
                let name = array.name;
                format!("CASE WHEN cardinality({name}) < 7 THEN {name} END")
            }
            _ => {
                let item: Item = item;
                self.literal(Kind::Array(item)).text
            }
        };
        let head = format!("{before}FOREACH {target} IN ARRAY {array} LOOP");
        self.scope(&label, Vec::new());
        let statements = self.repeated(&label, 6, depth);
        self.scopes.pop();
        Node::Parts(vec![(head, statements)], "END LOOP;".to_owned())
    }

    fn query_loop(&mut self, depth: usize) -> Node {
        let (label, before) = self.label();
        self.scope(&label, Vec::new());
        let (target, query) = match self.rng.below(10) {
            0..=5 => {
                let kinds: Vec<Kind> = (0..self.rng.between(1, 3)).map(|_| self.any_kind()).collect();
                let (query, fields) = self.query(&kinds);
                let name = self.record(fields);
                self.declared(format!("{name} RECORD;"));
                (name, query)
            }
            6 | 7 => {
                let table = self.rng.below(self.tables.len());
                let query = self.whole_rows(table);
                (self.row_variable(table), query)
            }
            _ => {
                let mut targets = self.targets();
                targets.retain(|target| !target.name.contains('.'));
                if targets.is_empty() {
                    self.scopes.pop();
                    return self.simple();
                }
                let kinds: Vec<Kind> = targets.iter().map(|target| target.ty.kind()).collect();
                let names: Vec<String> = targets.into_iter().map(|target| target.name).collect();
                (names.join(", "), self.query(&kinds).0)
            }
        };
        let head = format!("{before}FOR {target} IN {query} LOOP");
        let statements = self.repeated(&label, 6, depth);
        self.scopes.pop();
        Node::Parts(vec![(head, statements)], "END LOOP;".to_owned())
    }

    /// A row of a table, in scope from here on and declared in the block around.
    fn row_variable(&mut self, table: usize) -> String {
        let name = self.fresh("row");
        let def = &self.tables[table];
        let (text, fields) = (format!("{name} {}%ROWTYPE;", def.name), self.row_fields(table));
        self.declared(text);
        if let Some(scope) = self.scopes.last_mut() {
            scope.records.push(Record { name: name.clone(), fields, table: Some(table) });
        }
        name
    }

    fn row_fields(&self, table: usize) -> Vec<Variable> {
        let columns = self.tables[table].columns.iter();
        let field = columns.map(|c| Variable { name: c.name.to_owned(), ty: c.ty, writable: true });
        field.collect()
    }

    fn jump(&mut self) -> Option<Node> {
        let loops: Vec<&Around> = self.around.iter().filter(|around| around.is_loop).collect();
        let exit = self.rng.chance(60);
        let labels: Vec<String> = self
            .around
            .iter()
            .filter(|around| exit || around.is_loop)
            .filter_map(|around| around.label.clone())
            .collect();
        let label = match self.rng.chance(50) && !labels.is_empty() {
            true => format!(" {}", self.rng.pick(&labels)),
            false if loops.is_empty() => return None,
            false => String::new(),
        };
        let word = if exit { "EXIT" } else { "CONTINUE" };
        let when = match self.rng.chance(80) {
            true => format!(" WHEN {}", self.expr(Kind::Bool, 2).text),
            false => String::new(),
        };
        Some(Node::line(format!("{word}{label}{when};")))
    }

    /// A block with variables, handlers, or both.
    fn block(&mut self, depth: usize) -> Node {
        let (label, before) = self.label();
        self.scope(&label, Vec::new());
        self.declarations.push(Vec::new());
        if self.rng.chance(50) {
            for _ in 0..self.rng.between(1, 3) {
                self.variable();
            }
        }
        self.around.push(Around { label, is_loop: false });
        let statements = self.branch(4, depth - 1);
        let handlers = match self.rng.chance(80) {
            true => self.handlers(depth),
            false => Vec::new(),
        };
        self.around.pop();
        self.scopes.pop();
        let declarations = self.declarations.pop().unwrap_or_default();
        let mut parts = Vec::new();
        let mut begin = format!("{before}BEGIN");
        if !declarations.is_empty() {
            parts.push((format!("{before}DECLARE"), declarations));
            begin = "BEGIN".to_owned();
        }
        parts.push((begin, statements));
        parts.extend(handlers);
        Node::Parts(parts, "END;".to_owned())
    }

    pub(super) fn handlers(&mut self, depth: usize) -> Vec<(String, Vec<Node>)> {
        let mut parts = Vec::new();
        self.handlers += 1;
        for n in 0..self.rng.between(1, 2) {
            let condition = self.rng.pick(&CONDITIONS);
            let word = if n == 0 { "EXCEPTION WHEN" } else { "WHEN" };
            let mut statements = self.branch(2, depth.saturating_sub(1));
            if self.rng.chance(60) {
                statements.insert(0, Node::line("RAISE NOTICE 'caught % %', SQLSTATE, SQLERRM;"));
            }
            parts.push((format!("{word} {condition} THEN"), statements));
        }
        self.handlers -= 1;
        parts
    }

    /// A declaration of a variable.
    pub(super) fn variable(&mut self) {
        if self.rng.chance(12) {
            let table = self.rng.below(self.tables.len());
            self.row_variable(table);
            return;
        }
        let ty = any_type(&mut self.rng);
        let hidden: Vec<Variable> = self.variables().into_iter().filter(|v| !v.name.contains('.')).collect();
        let own = self.scopes.last().map_or(0, |scope| scope.variables.len());
        let name = match own == 0 && !hidden.is_empty() && self.scopes.len() > 1 && self.rng.chance(20) {
            // It hides another of the name.
            true => self.rng.pick(&hidden).name,
            false => self.fresh("v"),
        };
        let (constant, not_null) = (self.rng.chance(7), self.rng.chance(8));
        let value = match self.rng.below(20) {
            0..=3 if !not_null && !constant => String::new(),
            4 => format!(" := {}", self.assignable(ty, 2).text),
            5..=7 if !not_null => {
                let value = self.in_mode(Mode::Safe, |maker| maker.fitting(ty, 2));
                format!(" := {}", value.text)
            }
            _ => format!(" {} {}", self.rng.pick(&[":=", "DEFAULT", "="]), self.first_value(ty)),
        };
        let constant_word = if constant { "CONSTANT " } else { "" };
        let not_null = if not_null { " NOT NULL" } else { "" };
        self.declared(format!("{name} {constant_word}{}{not_null}{value};", ty.sql()));
        self.declare(Variable { name, ty, writable: !constant });
    }
}

/// The expression in parentheses if it begins with CASE, which the words behind it would end.
fn closed(text: &str) -> String {
    if text.starts_with("CASE") { format!("({text})") } else { text.to_owned() }
}
