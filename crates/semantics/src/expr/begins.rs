//! Conditions on how a text begins.
//!
//! Responsible for: what LIKE and `starts_with` say of it. Not responsible for: how patterns match (`function`), which
//! indexes find such texts (`plan` of the crate `plpgsql`).

use albireo_base::Value;

use super::function::{BEGINNING, Beginning, Rest, beginning};
use super::{Expr, ExprKind};
use crate::datum::Datum;
use crate::types::Scalar;

/// What a condition says of how a text begins.
#[derive(Clone, PartialEq, Debug)]
pub struct Begins<'e> {
    /// The text.
    pub text: &'e Expr,
    /// With what it begins, of type TEXT.
    pub with: Expr,
    /// What more is said.
    pub says: Says,
}

/// What a condition says of a text, besides how it begins; what can be known best comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Says {
    /// That nothing follows: it is this text.
    Equal,
    /// Nothing.
    NoMore,
    /// Something.
    More,
    /// Perhaps something. Whether it says at all how the text begins is known when it is evaluated: if not, that is
    /// empty.
    Perhaps,
}

/// What a condition says of how a text begins; `None` if it says nothing of that.
pub fn begins(condition: &Expr) -> Option<Begins<'_>> {
    let ExprKind::Function(builtin, args) = &condition.kind else { return None };
    match (builtin.name, args.as_slice()) {
        ("starts_with", [text, with]) => {
            let says_nothing = constant(with) == Some("");
            (!says_nothing).then(|| Begins { text, with: with.clone(), says: Says::NoMore })
        }
        ("like", [text, pattern, escape]) => match (constant(pattern), constant(escape)) {
            (Some(known), Some(escape)) => like(text, pattern, beginning(known, escape)),
            _ => {
                let args = vec![pattern.clone(), escape.clone()];
                let with = Expr::scalar(ExprKind::Function(&BEGINNING, args), Scalar::Text);
                Some(Begins { text, with, says: Says::Perhaps })
            }
        },
        _ => None,
    }
}

/// What LIKE says with a pattern that is known.
fn like<'e>(text: &'e Expr, pattern: &Expr, found: Beginning) -> Option<Begins<'e>> {
    let says = match found.rest {
        Rest::Nothing => Says::Equal,
        _ if found.text.is_empty() => return None,
        Rest::Anything => Says::NoMore,
        Rest::Signs => Says::More,
    };
    let kind = ExprKind::Constant(Datum::Value(Value::Text(found.text)));
    Some(Begins { text, with: Expr { kind, ty: pattern.ty.clone() }, says })
}

/// The text that a constant is.
fn constant(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Constant(Datum::Value(Value::Text(text))) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{ColumnRef, builtin};
    use crate::types::Type;

    fn text(text: &str) -> Expr {
        Expr::scalar(ExprKind::Constant(Datum::Value(Value::from(text))), Scalar::Text)
    }

    fn column() -> Expr {
        let column = ColumnRef { depth: 0, relation: 0, column: 0 };
        Expr::scalar(ExprKind::Column(column), Scalar::Text)
    }

    fn said(condition: &Expr) -> Option<(Option<String>, Says)> {
        let found = begins(condition)?;
        assert_eq!((found.text, &found.with.ty), (&column(), &Type::Scalar(Scalar::Text)));
        Some((constant(&found.with).map(str::to_owned), found.says))
    }

    #[test]
    fn like_and_starts_with_say_how_a_text_begins() {
        let known = |text: &str, says| Some((Some(text.to_owned()), says));
        let like = |pattern: Expr, escape: &str| {
            let args = vec![column(), pattern, text(escape)];
            said(&Expr::condition(ExprKind::Function(&crate::expr::function::LIKE, args)))
        };
        assert_eq!(like(text("ab%"), "\\"), known("ab", Says::NoMore));
        assert_eq!(like(text("ab_"), "\\"), known("ab", Says::More));
        assert_eq!(like(text("ab"), "\\"), known("ab", Says::Equal));
        assert_eq!(like(text(""), "\\"), known("", Says::Equal));
        assert_eq!(like(text("a!%%"), "!"), known("a%", Says::NoMore));
        assert_eq!(like(text("%b"), "\\"), None);
        assert_eq!(like(text("ab\\"), "\\"), None);
        assert_eq!(like(text("ab%"), "!!"), None);
        assert_eq!(like(column(), "\\"), Some((None, Says::Perhaps)));
        let starts = |with: Expr| {
            let function = builtin("starts_with", &[Scalar::Text, Scalar::Text]).unwrap();
            said(&Expr::condition(ExprKind::Function(function, vec![column(), with])))
        };
        assert_eq!(starts(text("a%")), known("a%", Says::NoMore));
        assert_eq!(starts(text("")), None);
        assert_eq!(starts(column()), Some((None, Says::NoMore)));
        let folding = vec![column(), text("ab%"), text("\\")];
        let folding = Expr::condition(ExprKind::Function(&crate::expr::function::ILIKE, folding));
        assert_eq!(said(&folding), None);
        assert_eq!(said(&Expr::condition(ExprKind::Not(Box::new(folding)))), None);
    }
}
