//! A tree as one line of text, with all its spans checked on the way.

use albireo_base::SqlError;
use albireo_sql::ast::Spanned;
use albireo_sql::source::Source;

use super::ast::*;

/// The tree of `body` without its spans, after checking these: each lies within its parent's and at
/// characters' boundaries, holds what it should, and the trees of SQL point into it.
pub(super) fn outline(body: &str) -> Result<String, SqlError> {
    let tree = super::parse(body)?;
    let mut writer = Writer { body, spans: vec![Span { start: 0, end: body.len() }], out: String::new() };
    writer.node(tree.span, |w| w.block(&tree.block));
    Ok(writer.out)
}

struct Writer<'a> {
    body: &'a str,
    /// The spans around, the innermost last.
    spans: Vec<Span>,
    out: String,
}

impl Writer<'_> {
    /// Writes with `write` what has this span.
    fn node(&mut self, span: Span, write: impl FnOnce(&mut Self)) {
        let parent = *self.spans.last().unwrap();
        assert!(span.start < span.end, "{span:?} is empty in {}", self.body);
        assert!(parent.start <= span.start && span.end <= parent.end, "{span:?} is not in {parent:?}");
        let text = self.body.get(span.start..span.end).expect("a span cuts a character");
        assert_eq!(text.trim_ascii(), text, "{span:?} has blanks at its ends");
        self.spans.push(span);
        write(self);
        self.spans.pop();
    }

    fn group(&mut self, word: &str, write: impl FnOnce(&mut Self)) {
        self.word("(");
        self.out.push_str(word);
        write(self);
        self.out.push(')');
    }

    fn word(&mut self, word: &str) {
        if !self.out.is_empty() && !self.out.ends_with('(') {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    fn name(&mut self, name: &Name) {
        self.node(name.span, |w| {
            let text = name.span.text(w.body);
            match name.quoted {
                true => assert_eq!(text, format!("\"{}\"", name.text.replace('"', "\"\""))),
                false => assert_eq!(text.to_lowercase(), name.text),
            }
            w.word(if name.quoted { text } else { &name.text });
        });
    }

    fn label(&mut self, label: &Option<Name>) {
        if let Some(label) = label {
            self.word("<<");
            self.name(label);
            self.out.push_str(" >>");
        }
    }

    fn variable(&mut self, variable: &VariableRef) {
        self.node(variable.span, |w| {
            let names: Vec<_> = variable.parts.iter().map(|part| part.text.as_str()).collect();
            w.word(&names.join("."));
            for part in &variable.parts {
                w.node(part.span, |_| {});
            }
        });
    }

    fn variables(&mut self, all: &[VariableRef]) {
        all.iter().for_each(|variable| self.variable(variable));
    }

    /// The places that the SQL parser gives must lie within the span.
    fn tree(&mut self, span: Span, tree: &(impl Spanned + std::fmt::Display)) {
        self.node(span, |w| {
            w.word(&format!("`{tree}`"));
            if let Some(position) = Source::new(w.body).position(tree.span().start) {
                let first = span.position(w.body);
                let last = first + span.text(w.body).chars().count();
                assert!((first..last).contains(&position), "{tree} at {position} is not in {first}..{last}");
            }
        });
    }

    fn expression(&mut self, expression: &Expression) {
        self.tree(expression.span, expression.tree.as_ref());
    }

    fn expressions(&mut self, all: &[Expression]) {
        all.iter().for_each(|expression| self.expression(expression));
    }

    fn query(&mut self, query: &Query) {
        self.tree(query.span, query.tree.as_ref());
    }

    fn block(&mut self, block: &Block) {
        self.node(block.span, |w| {
            w.group("block", |w| {
                w.label(&block.label);
                block.declarations.iter().for_each(|declaration| w.declaration(declaration));
                w.statements(&block.statements);
                block.handlers.iter().for_each(|handler| w.handler(handler));
            });
        });
    }

    fn declaration(&mut self, declaration: &Declaration) {
        self.node(declaration.span, |w| {
            w.group("declare", |w| {
                w.name(&declaration.name);
                match &declaration.kind {
                    DeclarationKind::Alias(variable) => {
                        w.word("alias");
                        w.variable(variable);
                    }
                    DeclarationKind::Variable { constant, ty, not_null, default } => {
                        if *constant {
                            w.word("constant");
                        }
                        w.node(ty.span, |w| w.word(&type_kind(&ty.kind)));
                        if *not_null {
                            w.word("not null");
                        }
                        default.iter().for_each(|default| w.expression(default));
                    }
                }
            });
        });
    }

    fn handler(&mut self, handler: &Handler) {
        self.node(handler.span, |w| {
            w.group("on", |w| {
                handler.conditions.iter().for_each(|condition| w.condition(condition));
                w.statements(&handler.statements);
            });
        });
    }

    fn condition(&mut self, condition: &Condition) {
        self.node(condition.span, |w| match &condition.kind {
            ConditionKind::Others => w.word("others"),
            ConditionKind::State(state) => w.word(&state.to_string()),
            ConditionKind::Named { name, states } => w.word(&format!("{name}={states:?}")),
        });
    }

    fn statements(&mut self, all: &[Statement]) {
        for statement in all {
            self.node(statement.span, |w| {
                assert!(statement.span.text(w.body).ends_with(';'));
                w.statement(&statement.kind);
            });
        }
    }

    fn otherwise(&mut self, otherwise: &Option<Vec<Statement>>) {
        if let Some(statements) = otherwise {
            self.group("else", |w| w.statements(statements));
        }
    }

    fn statement(&mut self, kind: &StatementKind) {
        match kind {
            StatementKind::Block(block) => self.block(block),
            StatementKind::Assign { target, value } => self.group("assign", |w| {
                w.target(target);
                w.expression(value);
            }),
            StatementKind::If { branches, otherwise } => {
                for (n, branch) in branches.iter().enumerate() {
                    let word = if n == 0 { "if" } else { "elsif" };
                    self.node(branch.span, |w| {
                        w.group(word, |w| {
                            w.expression(&branch.condition);
                            w.statements(&branch.statements);
                        });
                    });
                }
                self.otherwise(otherwise);
            }
            StatementKind::Case { operand, branches, otherwise } => self.group("case", |w| {
                operand.iter().for_each(|operand| w.expression(operand));
                for branch in branches {
                    w.node(branch.span, |w| {
                        w.group("when", |w| {
                            w.expressions(&branch.values);
                            w.statements(&branch.statements);
                        });
                    });
                }
                w.otherwise(otherwise);
            }),
            StatementKind::Loop(a_loop) => self.a_loop(a_loop),
            StatementKind::Jump(jump) => {
                let word = if jump.kind == JumpKind::Exit { "exit" } else { "continue" };
                self.group(word, |w| {
                    jump.label.iter().for_each(|label| w.name(label));
                    jump.when.iter().for_each(|when| w.expression(when));
                });
            }
            other => self.simple(other),
        }
    }

    fn simple(&mut self, kind: &StatementKind) {
        match kind {
            StatementKind::Perform(query) => self.group("perform", |w| w.query(query)),
            StatementKind::Call { function } => self.group("call", |w| w.word(&format!("`{function}`"))),
            StatementKind::Sql { query, into } => self.group("sql", |w| {
                w.query(query);
                if let Some(into) = into {
                    assert!(query.span.start < into.span.start && into.span.end <= query.span.end);
                    w.node(into.span, |w| {
                        w.group("into", |w| {
                            if into.strict {
                                w.word("strict");
                            }
                            w.variables(&into.targets);
                        });
                    });
                }
            }),
            StatementKind::Diagnostics(all) => self.group("diagnostics", |w| {
                for diagnostic in all {
                    w.node(diagnostic.span, |w| {
                        w.variable(&diagnostic.target);
                        w.word(&format!("{:?}", diagnostic.item));
                    });
                }
            }),
            StatementKind::SynchronousCommit(wait) => {
                self.group("synchronous_commit", |w| w.word(&format!("{wait:?}")));
            }
            StatementKind::Raise(raise) => self.raise(raise),
            StatementKind::Assert { condition, message } => self.group("assert", |w| {
                w.expression(condition);
                message.iter().for_each(|message| w.expression(message));
            }),
            StatementKind::Return(value) => {
                self.group("return", |w| value.iter().for_each(|value| w.expression(value)));
            }
            StatementKind::ReturnNext(value) => {
                self.group("next", |w| value.iter().for_each(|value| w.expression(value)));
            }
            StatementKind::ReturnQuery(query) => self.group("query", |w| w.query(query)),
            _ => self.group("null", |_| {}),
        }
    }

    fn target(&mut self, target: &Assignee) {
        self.node(target.span, |w| {
            w.name(&target.variable);
            for accessor in &target.path {
                match accessor {
                    Accessor::Field(name) => w.group(".", |w| w.name(name)),
                    Accessor::Subscript(expression) => w.group("at", |w| w.expression(expression)),
                }
            }
        });
    }

    fn a_loop(&mut self, a_loop: &Loop) {
        let word = match a_loop.kind {
            LoopKind::Endless => "loop",
            LoopKind::While(_) => "while",
            LoopKind::Range { .. } => "range",
            LoopKind::Query { .. } => "for",
            LoopKind::Array { .. } => "each",
        };
        self.group(word, |w| {
            w.label(&a_loop.label);
            match &a_loop.kind {
                LoopKind::Endless => {}
                LoopKind::While(condition) => w.expression(condition),
                LoopKind::Range { variable, reverse, from, to, step } => {
                    w.name(variable);
                    if *reverse {
                        w.word("reverse");
                    }
                    w.expression(from);
                    w.expression(to);
                    step.iter().for_each(|step| w.expression(step));
                }
                LoopKind::Query { targets, query } => {
                    w.variables(targets);
                    w.query(query);
                }
                LoopKind::Array { targets, array } => {
                    w.variables(targets);
                    w.expression(array);
                }
            }
            w.group("do", |w| w.statements(&a_loop.statements));
        });
    }

    fn raise(&mut self, raise: &Raise) {
        self.group("raise", |w| {
            w.word(&format!("{:?}", raise.level));
            match &raise.kind {
                RaiseKind::Again => w.word("again"),
                RaiseKind::Options => {}
                RaiseKind::Condition(condition) => w.condition(condition),
                RaiseKind::Message(message) => w.node(message.span, |w| {
                    assert_eq!(message.pieces.len(), message.arguments.len() + 1);
                    w.word(&format!("{:?}", message.pieces));
                    w.expressions(&message.arguments);
                }),
            }
            for option in &raise.options {
                w.node(option.span, |w| {
                    w.group(&format!("{:?}", option.kind), |w| w.expression(&option.value));
                });
            }
        });
    }
}

fn type_kind(kind: &TypeKind) -> String {
    let names = |all: &[Name]| all.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".");
    match kind {
        TypeKind::Plain(data_type) => format!("`{data_type}`"),
        TypeKind::Array(data_type) => format!("array of `{data_type}`"),
        TypeKind::Record => "record".to_owned(),
        TypeKind::Of(all) => format!("type of {}", names(all)),
        TypeKind::RowOf(all) => format!("row of {}", names(all)),
    }
}
