//! What is generated: tables with rows, routines, and a call; and how it is made smaller.

use std::fmt::Write;

use super::types::{Kind, quoted};

/// A statement or declaration.
#[derive(Clone, Debug)]
pub enum Node {
    /// One without others in it.
    Line(String),
    /// Heads, each with the statements behind it, and an end.
    Parts(Vec<(String, Vec<Node>)>, String),
}

/// A routine.
#[derive(Clone, Debug)]
pub struct Source {
    /// Up to the body.
    pub head: String,
    pub declarations: Vec<Node>,
    pub statements: Vec<Node>,
}

/// An argument: the type it has, and its value as text, or NULL.
#[derive(Clone, Debug)]
pub struct Argument {
    pub kind: Kind,
    pub value: Option<String>,
}

/// All of one seed.
#[derive(Clone, Debug)]
pub struct Program {
    /// For each table CREATE TABLE, and CREATE INDEX for its indexes.
    pub tables: Vec<Vec<String>>,
    /// Statements that read whole tables, in an order.
    pub dumps: Vec<String>,
    /// INSERT statements.
    pub rows: Vec<String>,
    /// The last is called, and may call the others.
    pub routines: Vec<Source>,
    pub name: String,
    pub arguments: Vec<Argument>,
    pub is_procedure: bool,
    /// How many arguments CALL has for parameters that only go out.
    pub outs: usize,
}

impl Program {
    /// The statement that makes the call.
    pub fn call(&self) -> String {
        let argument = |argument: &Argument| match &argument.value {
            Some(value) => format!("{}::{}", quoted(value), argument.kind.sql()),
            None => format!("NULL::{}", argument.kind.sql()),
        };
        let mut arguments: Vec<String> = self.arguments.iter().map(argument).collect();
        arguments.extend(std::iter::repeat_n("NULL".to_owned(), self.outs));
        let arguments = arguments.join(", ");
        match self.is_procedure {
            true => format!("CALL {}({arguments})", self.name),
            false => format!("SELECT * FROM {}({arguments})", self.name),
        }
    }

    /// Everything as a script.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for statement in self.tables.iter().flatten().chain(&self.rows) {
            writeln!(text, "{statement};").unwrap();
        }
        for routine in &self.routines {
            writeln!(text, "{};", routine.text()).unwrap();
        }
        writeln!(text, "{};", self.call()).unwrap();
        text
    }

    fn lists(&mut self) -> Vec<&mut Vec<Node>> {
        self.routines
            .iter_mut()
            .flat_map(|routine| [&mut routine.statements, &mut routine.declarations])
            .collect()
    }

    /// The programs with one thing less, the biggest things first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for n in 0..self.rows.len() {
            let mut program = self.clone();
            program.rows.remove(n);
            all.push((1, program));
        }
        for n in 0..self.routines.len() - 1 {
            let mut program = self.clone();
            program.routines.remove(n);
            all.push((100, program));
        }
        let mut program = self.clone();
        let lists = program.lists().len();
        for list in 0..lists {
            let count: usize = program.lists()[list].iter().map(Node::count).sum();
            for n in 0..count {
                for change in [Change::Remove, Change::Unwrap] {
                    let mut smaller = self.clone();
                    let mut at = n;
                    let size = apply(smaller.lists()[list], &mut at, change);
                    if let Some(size) = size {
                        all.push((size, smaller));
                    }
                }
            }
        }
        all.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        all.into_iter().map(|(_, program)| program).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A node goes.
    Remove,
    /// A node goes, what is in it stays.
    Unwrap,
}

/// Changes the node that comes as `at`-th; how much smaller it became, if it was there.
fn apply(nodes: &mut Vec<Node>, at: &mut usize, change: Change) -> Option<usize> {
    for n in 0..nodes.len() {
        if *at == 0 {
            let size = nodes[n].count();
            return match (nodes.remove(n), change) {
                (_, Change::Remove) => Some(size),
                (Node::Parts(parts, _), Change::Unwrap) => {
                    let inner: Vec<Node> = parts.into_iter().flat_map(|(_, nodes)| nodes).collect();
                    nodes.splice(n..n, inner);
                    Some(1)
                }
                (Node::Line(_), Change::Unwrap) => None,
            };
        }
        *at -= 1;
        if let Node::Parts(parts, _) = &mut nodes[n] {
            for (_, inner) in parts {
                let count: usize = inner.iter().map(Node::count).sum();
                if *at < count {
                    return apply(inner, at, change);
                }
                *at -= count;
            }
        }
    }
    None
}

impl Node {
    pub fn line(text: impl Into<String>) -> Self {
        Self::Line(text.into())
    }

    /// How many nodes it is.
    fn count(&self) -> usize {
        match self {
            Self::Line(_) => 1,
            Self::Parts(parts, _) => {
                1 + parts.iter().flat_map(|(_, nodes)| nodes).map(Self::count).sum::<usize>()
            }
        }
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        match self {
            Self::Line(line) => writeln!(text, "{indent}{line}").unwrap(),
            Self::Parts(parts, end) => {
                for (head, nodes) in parts {
                    writeln!(text, "{indent}{head}").unwrap();
                    nodes.iter().for_each(|node| node.write(depth + 1, text));
                }
                writeln!(text, "{indent}{end}").unwrap();
            }
        }
    }
}

impl Source {
    pub fn text(&self) -> String {
        let mut text = format!("{} LANGUAGE plpgsql AS $$\n<<body>>\n", self.head);
        if !self.declarations.is_empty() {
            text.push_str("DECLARE\n");
            self.declarations.iter().for_each(|node| node.write(1, &mut text));
        }
        text.push_str("BEGIN\n");
        self.statements.iter().for_each(|node| node.write(1, &mut text));
        text.push_str("END;\n$$");
        text
    }
}
