//! Groups and aggregates at work.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use albireo_semantics::query::accumulate::{Accumulator, Sorted};
use albireo_semantics::query::tree::{Aggregate, Grouping, OrderBy, OrderKey, Select};

use super::frame::{Row, Running};
use super::scan::Flow;
use super::select::Output;
use crate::Stop;
use crate::datum::Datum;

/// A group.
struct Group<'g> {
    /// The current rows when it was met first.
    rows: Vec<Row>,
    keys: Vec<Datum>,
    states: Vec<Accumulator<&'g Aggregate>>,
}

impl<'h> Running<'h> {
    /// The results of a query's groups.
    pub(super) fn groups(
        &mut self,
        select: &Select,
        grouping: &Grouping,
        order: &[OrderKey],
    ) -> Result<Vec<Output>, Stop> {
        let mut groups: BTreeMap<Sorted, Group<'_>> = BTreeMap::new();
        if self.all(&select.constants)? {
            self.steps(&select.relations, &select.steps, &mut |running| {
                running.enter_group(grouping, &mut groups)?;
                Ok(if select.ends { Flow::NextSite } else { Flow::More })
            })?;
        }
        if groups.is_empty() && !grouping.written {
            self.no_rows();
            let rows = self.level().rows.clone();
            let states = grouping.aggregates.iter().map(Accumulator::new).collect();
            groups.insert(Sorted(Vec::new()), Group { rows, keys: Vec::new(), states });
        }
        let mut outputs = Vec::with_capacity(groups.len());
        for (_, group) in groups {
            self.level().rows = group.rows;
            let mut results = group.keys;
            for state in group.states {
                results.push(state.result()?);
            }
            self.set(select.relations.len() as u16, Row::Made(Arc::from(results)));
            if let Some(having) = &grouping.having
                && !self.is_true(having)?
            {
                continue;
            }
            let output = self.output(select, order)?;
            self.keep(&output.row)?;
            outputs.push(output);
        }
        Ok(outputs)
    }

    fn enter_group<'g>(
        &mut self,
        grouping: &'g Grouping,
        groups: &mut BTreeMap<Sorted, Group<'g>>,
    ) -> Result<(), Stop> {
        let keys = self.values(&grouping.keys)?;
        let group = match groups.entry(Sorted(keys.clone())) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                let rows = self.level().rows.clone();
                self.keep(&keys)?;
                let states = grouping.aggregates.iter().map(Accumulator::new).collect();
                place.insert(Group { rows, keys, states })
            }
        };
        for (state, aggregate) in group.states.iter_mut().zip(&grouping.aggregates) {
            if let Some(filter) = &aggregate.filter
                && !self.is_true(filter)?
            {
                continue;
            }
            let args = self.values(&aggregate.args)?;
            let mut order = Vec::with_capacity(aggregate.order.len());
            for key in &aggregate.order {
                if let OrderBy::Expr(expr) = &key.by {
                    order.push(self.value(expr)?);
                }
            }
            if state.keeps() {
                self.keep(&args)?;
            }
            state.add(args, order)?;
        }
        Ok(())
    }
}
