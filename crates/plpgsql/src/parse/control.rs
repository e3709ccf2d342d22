//! Statements that hold others: IF, CASE and loops; and the jumps out of them.

use albireo_base::SqlError;

use super::ast::{Branch, CaseBranch, Jump, JumpKind, Loop, LoopKind, Name, StatementKind, VariableRef};
use super::parser::Parser;

impl Parser<'_> {
    pub(super) fn an_if(&mut self) -> Result<StatementKind, SqlError> {
        let mut branches = Vec::new();
        while branches.is_empty() || self.next_is("elsif") || self.next_is("elseif") {
            let start = self.advance().span;
            let condition = self.expression(&["then"])?;
            self.expect("then")?;
            let statements = self.statements()?;
            branches.push(Branch { condition, statements, span: self.since(start) });
        }
        let otherwise = match self.eat("else") {
            true => Some(self.statements()?),
            false => None,
        };
        self.expect("end")?;
        self.expect("if")?;
        Ok(StatementKind::If { branches, otherwise })
    }

    pub(super) fn a_case(&mut self) -> Result<StatementKind, SqlError> {
        self.advance();
        let operand = match self.next_is("when") {
            true => None,
            false => Some(self.expression(&["when"])?),
        };
        let mut branches = Vec::new();
        while branches.is_empty() || self.next_is("when") {
            let start = self.expect("when")?.span;
            let values = match operand {
                Some(_) => self.expressions("then")?,
                None => vec![self.expression(&["then"])?],
            };
            self.expect("then")?;
            let statements = self.statements()?;
            branches.push(CaseBranch { values, statements, span: self.since(start) });
        }
        let otherwise = match self.eat("else") {
            true => Some(self.statements()?),
            false => None,
        };
        self.expect("end")?;
        self.expect("case")?;
        Ok(StatementKind::Case { operand, branches, otherwise })
    }

    /// Takes a loop behind its label.
    pub(super) fn a_loop(&mut self, label: Option<Name>) -> Result<StatementKind, SqlError> {
        let token = self.peek();
        let kind = match self.keyword(token).as_str() {
            "loop" => LoopKind::Endless,
            "while" => {
                self.advance();
                LoopKind::While(self.expression(&["loop"])?)
            }
            "for" => self.a_for()?,
            "foreach" => self.foreach()?,
            _ => return Err(self.unexpected(token)),
        };
        self.expect("loop")?;
        let statements = self.scoped(label.as_ref(), true, Self::statements)?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label.as_ref())?;
        Ok(StatementKind::Loop(Loop { label, kind, statements }))
    }

    /// Takes FOR up to LOOP.
    fn a_for(&mut self) -> Result<LoopKind, SqlError> {
        self.advance();
        let targets = self.variables()?;
        self.expect("in")?;
        if self.next_is("execute") {
            return Err(self.refuse_dynamic(self.peek()));
        }
        let reverse = self.peek();
        let is_reverse = self.eat("reverse");
        let end = self.find_end(&["..", "loop"], "expression")?;
        if self.is(self.token(end), "..") {
            return self.range(targets, is_reverse, end);
        }
        if is_reverse {
            return Err(self.syntax(reverse.span, "cannot specify REVERSE in query FOR loop"));
        }
        if self.at_cursor(end) {
            return Err(self.refuse_cursor(self.peek()));
        }
        Ok(LoopKind::Query { targets, query: self.query_to(end)? })
    }

    /// Whether a name or a name with arguments stands before token `end`: a cursor in PostgreSQL.
    fn at_cursor(&self, end: usize) -> bool {
        let is_query = ["select", "with", "values", "insert", "update", "delete"];
        self.is_name(self.peek())
            && !is_query.iter().any(|word| self.next_is(word))
            && (end == self.at + 1 || self.is(self.peek_nth(1), "(") && self.is(self.token(end - 1), ")"))
    }

    /// Takes `from .. to [BY step]`; the points are token `points`.
    fn range(
        &mut self,
        targets: Vec<VariableRef>,
        reverse: bool,
        points: usize,
    ) -> Result<LoopKind, SqlError> {
        let first = targets[0].span;
        let mut names = targets.into_iter().flat_map(|target| target.parts);
        let variable = match (names.next(), names.next()) {
            (Some(name), None) if !name.text.starts_with('$') || name.quoted => name,
            _ => return Err(self.syntax(first, "integer FOR loop must have only one target variable")),
        };
        let from = self.expression_to(points)?;
        self.expect("..")?;
        let to = self.expression(&["loop", "by"])?;
        let step = match self.eat("by") {
            true => Some(self.expression(&["loop"])?),
            false => None,
        };
        Ok(LoopKind::Range { variable, reverse, from, to, step })
    }

    /// Takes FOREACH up to LOOP.
    fn foreach(&mut self) -> Result<LoopKind, SqlError> {
        self.advance();
        let targets = self.variables()?;
        if self.next_is("slice") {
            return Err(self.refuse_slice(self.peek()));
        }
        self.expect("in")?;
        self.expect("array")?;
        Ok(LoopKind::Array { targets, array: self.expression(&["loop"])? })
    }

    /// Takes EXIT or CONTINUE; what it names must be around it.
    pub(super) fn jump(&mut self) -> Result<StatementKind, SqlError> {
        let start = self.advance();
        let kind = match self.is(start, "exit") {
            true => JumpKind::Exit,
            false => JumpKind::Continue,
        };
        let label = if self.is_name(self.peek()) { Some(self.name()?) } else { None };
        if !self.next_is("when") && !self.next_is(";") {
            return Err(self.unexpected(self.peek()));
        }
        let when = match self.eat("when") {
            true => Some(self.expression(&[";"])?),
            false => None,
        };
        match &label {
            Some(label) => self.check_jump(kind, label)?,
            None if self.scopes.iter().any(|scope| scope.is_loop) => {}
            None => {
                let message = match kind {
                    JumpKind::Exit => "EXIT cannot be used outside a loop, unless it has a label",
                    JumpKind::Continue => "CONTINUE cannot be used outside a loop",
                };
                return Err(self.syntax(start.span, message));
            }
        }
        Ok(StatementKind::Jump(Jump { kind, label, when }))
    }

    fn check_jump(&self, kind: JumpKind, label: &Name) -> Result<(), SqlError> {
        let named = |wanted: &str| {
            let mut scopes = self.scopes.iter().rev();
            scopes.find(|scope| scope.label.as_deref() == Some(wanted))
        };
        match (kind, named(&label.text)) {
            (JumpKind::Continue, Some(scope)) if !scope.is_loop => {
                let message = format!("block label \"{}\" cannot be used in CONTINUE", label.text);
                Err(self.syntax(label.span, message))
            }
            (_, Some(_)) => Ok(()),
            (_, None) => {
                let message = format!(
                    "there is no label \"{}\" attached to any block or loop enclosing this statement",
                    label.text
                );
                let error = self.syntax(label.span, message);
                let labels = self.scopes.iter().filter_map(|scope| scope.label.as_deref());
                Err(match albireo_sql::names::closest(&label.text, labels) {
                    Some(meant) => error.with_hint(format!("Perhaps you meant the label \"{meant}\".")),
                    None => error,
                })
            }
        }
    }
}
