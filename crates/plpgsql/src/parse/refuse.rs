//! What the language has and we do not do: why, and what to do instead.

use albireo_base::{SqlError, SqlState};

use super::lexer::Token;
use super::parser::Parser;

const ONE_TRANSACTION: &str =
    "A call is one transaction: it is committed when it succeeds and leaves no trace when it fails.";

/// SQL that a body of PostgreSQL may contain and ours may not.
const OUTSIDE: [&str; 28] = [
    "alter",
    "analyze",
    "checkpoint",
    "cluster",
    "comment",
    "copy",
    "create",
    "deallocate",
    "discard",
    "drop",
    "explain",
    "grant",
    "import",
    "listen",
    "load",
    "lock",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "reset",
    "revoke",
    "security",
    "show",
    "truncate",
    "unlisten",
    "vacuum",
];

impl Parser<'_> {
    /// The refusal of a statement by its first word.
    pub(crate) fn refusal(&self, word: &str, token: Token) -> Option<SqlError> {
        Some(match word {
            "execute" => self.refuse_dynamic(token),
            "open" | "fetch" | "move" | "close" => self.refuse_cursor(token),
            "commit" => self.refused(
                token,
                "COMMIT inside a procedure",
                ONE_TRANSACTION,
                "Leave COMMIT out, and call the procedure once for each transaction.",
            ),
            "rollback" => self.refused(
                token,
                "ROLLBACK inside a procedure",
                ONE_TRANSACTION,
                "Use RAISE EXCEPTION to undo the whole call, or a block with EXCEPTION to undo a part.",
            ),
            "savepoint" | "release" => self.refused(
                token,
                &format!("{} inside a procedure", word.to_ascii_uppercase()),
                ONE_TRANSACTION,
                "Use a block with EXCEPTION: an error in it undoes what the block did.",
            ),
            "start" | "abort" => self.refused(
                token,
                &format!("{} inside a procedure", word.to_ascii_uppercase()),
                ONE_TRANSACTION,
                "Leave it out.",
            ),
            "do" => self.refused(
                token,
                "DO inside a procedure",
                "It would be another body within this one.",
                "Write a nested block: BEGIN ... END.",
            ),
            _ if OUTSIDE.contains(&word) => self.refused(
                token,
                &format!("{} inside a procedure", word.to_ascii_uppercase()),
                "A procedure is compiled for the tables and settings there are; it reads and changes rows.",
                "Run it as a separate statement.",
            ),
            _ => return None,
        })
    }

    pub(crate) fn refuse_setting(&self, token: Token, name: &str, local: bool) -> SqlError {
        let what = format!("SET{} {name} inside a procedure", if local { " LOCAL" } else { "" });
        let reason =
            "Of the settings only synchronous_commit belongs to a transaction, and to this one alone.";
        let remedy = match name {
            "synchronous_commit" => "Write SET LOCAL synchronous_commit.",
            _ => "Run it as a separate statement before the call.",
        };
        self.refused(token, &what, reason, remedy)
    }

    pub(crate) fn refuse_dynamic(&self, token: Token) -> SqlError {
        self.refused(
            token,
            "dynamic SQL (EXECUTE)",
            "A procedure is compiled when it is created, so its statements must be known then.",
            "Write the statement itself; IF or CASE can choose between several.",
        )
    }

    pub(crate) fn refuse_cursor(&self, token: Token) -> SqlError {
        let reason = "The rows of a query are read by a loop that is compiled together with it.";
        let remedy = "Write FOR row IN SELECT ... LOOP, which reads the rows one by one.";
        self.refused(token, "a cursor", reason, remedy)
    }

    pub(crate) fn refuse_collate(&self, token: Token) -> SqlError {
        let reason = "Texts are compared by their bytes, as with the collation \"C\".";
        self.refused(token, "COLLATE in a declaration", reason, "Leave COLLATE out.")
    }

    pub(crate) fn refuse_dimensions(&self, token: Token) -> SqlError {
        let reason = "Arrays have one dimension.";
        self.refused(token, "an array of several dimensions", reason, "Compute one index from several.")
    }

    pub(crate) fn refuse_slice(&self, token: Token) -> SqlError {
        let reason = "Arrays have one dimension, so there is nothing to slice.";
        self.refused(token, "SLICE in FOREACH", reason, "Leave SLICE out.")
    }

    pub(crate) fn refuse_array_slice(&self, token: Token) -> SqlError {
        let reason = "An assignment sets a whole array or one element.";
        self.refused(token, "assignment to a slice of an array", reason, "Assign the elements in a loop.")
    }

    /// 0A000 at `token`.
    pub(crate) fn refused(&self, token: Token, what: &str, reason: &str, remedy: &str) -> SqlError {
        let message = format!("{what} is not supported");
        let error = self.error(token.span, SqlState::FEATURE_NOT_SUPPORTED, message);
        error.with_detail(reason).with_hint(remedy)
    }
}
