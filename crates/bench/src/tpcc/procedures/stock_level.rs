//! Stock-Level (clause 2.8).

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Transaction};
use albireo_base::Tid;
use arrayvec::ArrayVec;

use super::found;
use super::tables::Tables;
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::StockLevel;

/// The procedure.
pub struct StockLevelProcedure(pub(crate) Arc<Tables>);

/// Orders that are looked at (clause 2.8.2.2).
const LAST_ORDERS: i32 = 20;
const MOST_LINES: usize = LAST_ORDERS as usize * MAX_ORDER_LINES;

impl Procedure for StockLevelProcedure {
    type Args = StockLevel;
    /// Different items of the district's last 20 orders whose stock is below the threshold.
    type Output = i32;

    fn name(&self) -> &str {
        "stock_level"
    }

    fn route(&self, args: &StockLevel) -> Route {
        Route::Key(args.w_id.into())
    }

    fn run(&self, tx: &mut Transaction, args: &StockLevel) -> Result<i32, Abort> {
        let t = &self.0;
        let district = ShortKey::new().i16(args.w_id).i16(args.d_id);
        let d = &t.district;
        let tid = found(tx.table(d.table).find(d.pkey, district), "district")?;
        let next_o_id = tx.table(d.table).get(tid, d.next_o_id);
        let (l, lines) = (&t.order_line, tx.table(t.order_line.table));
        let low = district.i32(next_o_id - LAST_ORDERS).range().0;
        let high = district.i32(next_o_id - 1).range().1;
        let (s, stock) = (&t.stock.base, tx.table(t.stock.base.table));
        let key = |i_id: i32| ShortKey::new().i16(args.w_id).i32(i_id);
        let mut asked = ArrayVec::<_, MOST_LINES>::new();
        asked.extend(
            lines
                .between(l.pkey, low, high)
                .take(MOST_LINES)
                .map(|line| stock.ask(s.pkey, key(lines.get(line, l.i_id)))),
        );
        let mut places = ArrayVec::<_, MOST_LINES>::new();
        for asked in &asked {
            let place = found(asked.tid(), "stock")?;
            stock.prefetch(place, s.quantity);
            places.push(place);
        }
        // Few stocks are low, so it is these that are told apart, not the items.
        let is_low = |place: &Tid| stock.get(*place, s.quantity) < args.threshold;
        let mut low = places;
        low.retain(|place| is_low(place));
        low.sort_unstable();
        let repeated = low.windows(2).filter(|pair| pair[0] == pair[1]).count();
        Ok((low.len() - repeated) as i32)
    }
}
