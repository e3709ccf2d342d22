//! Stock-Level (clause 2.8).

use std::sync::Arc;

use albireo_base::Tid;
use albireo_partition::{Abort, Procedure, Route, Transaction};
use albireo_storage::ShortKey;

use super::found;
use super::tables::Tables;
use crate::tpcc::MAX_ORDER_LINES;
use crate::tpcc::input::StockLevel;

/// The procedure.
pub struct StockLevelProcedure(pub(super) Arc<Tables>);

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
        let items = &mut items[..count];
        items.sort_unstable();
        let (s, stock) = (&t.stock.base, tx.table(t.stock.base.table));
        let mut places = [Tid(0); MOST_LINES];
        let mut different = 0;
        for (i, &i_id) in items.iter().enumerate() {
            if i > 0 && items[i - 1] == i_id {
                continue;
            }
            let tid = found(stock.find(s.pkey, ShortKey::new().i16(args.w_id).i32(i_id)), "stock")?;
            stock.prefetch(tid, s.quantity);
            places[different] = tid;
            different += 1;
        }
        let low =
            places[..different].iter().filter(|&&tid| stock.get(tid, s.quantity) < args.threshold).count();
        Ok(low as i32)
    }
}
