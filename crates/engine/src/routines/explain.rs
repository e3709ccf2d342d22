//! EXPLAIN PROCEDURE and EXPLAIN FUNCTION.

use albireo_base::{SqlError, SqlState};
use albireo_plpgsql::body::{Routines, Signature, find_explained};
use albireo_plpgsql::classify;
use albireo_plpgsql::define::Explanation;
use albireo_semantics::expr::RoutineId;

use super::Library;
use crate::outcome::text_column;
use crate::{Database, Outcome};

/// How a routine is run.
fn execution(library: &Library, id: RoutineId) -> String {
    let Some(code) = library.code(id) else { return "execution: interpreted".to_owned() };
    let (compiled, interpreted) = code.compiled.statements();
    format!(
        "execution: machine code of {} bytes, made in {:.1} ms; statements compiled: {compiled}, \
         left to the interpreter: {interpreted}",
        code.compiled.code_bytes(),
        code.compile_ns as f64 / 1e6,
    )
}

impl Database {
    /// The class of a routine, and its statements with their access paths.
    pub(super) fn explain_routine(&self, explanation: &Explanation) -> Result<Outcome, SqlError> {
        let _fixed = self.inner.definitions.read();
        let library = self.library();
        let known: Vec<(RoutineId, &Signature)> =
            library.signatures().map(|(id, signature)| (RoutineId(id), signature)).collect();
        let id = find_explained(&library.catalog, explanation, &known)?;
        let routine = library.bound(id)?;
        let Some(class) = library.class(id) else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a routine that is bound has no class"));
        };
        let named: Vec<(String, RoutineId)> =
            known.iter().map(|(id, signature)| (signature.shown(), *id)).collect();
        let all = named.iter().filter_map(|(name, id)| Some((name.as_str(), library.class(*id)?.as_ref())));
        let sterile = class.sterile(all);
        let mut execution = execution(&library, id);
        if let Some(logged) = library.logged(id).filter(|_| self.log().is_some()) {
            execution = format!("{execution}\n{}", logged.costs.shown());
        }
        let version = library.version(id);
        let lines = classify::explain(&routine, version, class, &sterile, &execution, library.as_ref());
        Ok(Outcome::Rows(text_column("QUERY PLAN", lines.iter().map(String::as_str))))
    }
}
