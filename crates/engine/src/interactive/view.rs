//! `albireo.transactions`: a row for each open transaction, the oldest first.

use std::sync::Arc;

use albireo_base::Value;
use albireo_semantics::query::View;
use albireo_semantics::types::Scalar;

use super::registry::{Activity, State};
use crate::Database;

impl Database {
    /// The view as it is now.
    pub(crate) fn transactions_view(&self) -> View {
        let (text, number) = (Scalar::Text, Scalar::BigInt);
        let columns = vec![
            ("id", number),
            ("state", text),
            ("isolation", text),
            ("began", Scalar::TimestampTz),
            ("changed", Scalar::TimestampTz),
            ("statement", text),
            ("locks", number),
            ("written_bytes", number),
            ("waits_for", number),
        ];
        let all = self.inner.transactions.all();
        let rows = all.iter().map(|activity| self.row_of(activity, &all)).collect();
        View { schema: "albireo", name: "transactions", columns, rows }
    }

    fn row_of(&self, activity: &Activity, all: &[Arc<Activity>]) -> Vec<Value> {
        let now = activity.now.lock();
        let state = match (&now.waits_for, now.state, self.overdue(&now)) {
            (Some(_), ..) => "waiting",
            (_, State::Active, _) => "active",
            (.., Some(_)) => "overdue",
            (_, State::Idle, _) => "idle",
            (_, State::Failed, _) => "failed",
        };
        let holder =
            now.waits_for.as_ref().and_then(|held| all.iter().find(|other| held.is_by(&other.owner)));
        let writing = activity.writing.as_ref();
        let number = |number: Option<u64>| number.map_or(Value::Null, |number| Value::BigInt(number as i64));
        vec![
            number(Some(activity.number)),
            Value::Text(state.to_owned()),
            Value::Text(now.level.to_owned()),
            Value::TimestampTz(activity.began_us),
            Value::TimestampTz(now.since_us),
            Value::Text(now.statement.clone()),
            number(writing.map(|writing| writing.reader.locks())),
            number(writing.map(|writing| writing.parked.bytes())),
            number(holder.map(|holder| holder.number)),
        ]
    }
}
