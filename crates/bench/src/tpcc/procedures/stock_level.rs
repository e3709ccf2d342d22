//! Stock-Level (clause 2.8).

use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Transaction};
use albireo_base::Tid;

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

    fn run(&self, tx: &mut Transaction<'_, '_>, args: &StockLevel) -> Result<i32, Abort> {
        let t = &self.0;
        let district = ShortKey::new().i16(args.w_id).i16(args.d_id);
        let d = &t.district;
        let tid = found(tx.table(d.table).find(d.pkey, district), "district")?;
        let next_o_id = tx.table(d.table).get(tid, d.next_o_id);
        let (l, lines) = (&t.order_line, tx.table(t.order_line.table));
        let low = district.i32(next_o_id - LAST_ORDERS).range().0;
        let high = district.i32(next_o_id - 1).range().1;
        let mut items = [0; MOST_LINES];
        let mut count = 0;
        for (item, tid) in items.iter_mut().zip(lines.between(l.pkey, low, high)) {
            *item = lines.get(tid, l.i_id);
            count += 1;
        }
        let items = &items[..count];
        let (s, stock) = (&t.stock.base, tx.table(t.stock.base.table));
        let key = |i_id: i32| ShortKey::new().i16(args.w_id).i32(i_id);
        items.iter().for_each(|&i_id| stock.prefetch_key(s.pkey, key(i_id)));
        let mut places = [Tid(0); MOST_LINES];
        for (place, &i_id) in places.iter_mut().zip(items) {
            *place = found(stock.find(s.pkey, key(i_id)), "stock")?;
            stock.prefetch(*place, s.quantity);
        }
        // Few stocks are low, so it is these that are told apart, not the items.
        let mut low = [Tid(0); MOST_LINES];
        let mut count = 0;
        for &tid in &places[..items.len()] {
            if stock.get(tid, s.quantity) < args.threshold {
                low[count] = tid;
                count += 1;
            }
        }
        let low = &mut low[..count];
        low.sort_unstable();
        let repeated = low.windows(2).filter(|pair| pair[0] == pair[1]).count();
        Ok((low.len() - repeated) as i32)
    }
}
