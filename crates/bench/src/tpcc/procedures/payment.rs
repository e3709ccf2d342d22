//! Payment (clause 2.5).

use std::fmt::Write as _;
use std::sync::Arc;

use albireo::{Abort, Procedure, Route, ShortKey, Site, Transaction};
use albireo_base::Tid;

use super::tables::Tables;
use super::{ask_for_customer, customer, found};
use crate::tpcc::input::Payment;
use crate::tpcc::text::Text;

/// The procedure.
pub struct PaymentProcedure(pub(crate) Arc<Tables>);

/// An address as the terminal shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct Address {
    pub street_1: Text<20>,
    pub street_2: Text<20>,
    pub city: Text<20>,
    pub state: Text<2>,
    pub zip: Text<9>,
}

/// What the terminal shows (clause 2.5.3.3).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct PaymentResult {
    pub c_id: i32,
    pub c_first: Text<16>,
    pub c_middle: Text<2>,
    pub c_last: Text<16>,
    pub warehouse: Address,
    pub district: Address,
    pub customer: Address,
    pub c_phone: Text<16>,
    pub c_since: i64,
    pub c_credit: Text<2>,
    pub c_credit_lim: i64,
    pub c_discount: i64,
    pub c_balance: i64,
    /// The first 200 characters of C_DATA, if C_CREDIT is "BC".
    pub c_data: Option<Text<200>>,
    pub h_date: i64,
}

/// Most characters of C_DATA.
const C_DATA: usize = 500;

impl Procedure for PaymentProcedure {
    type Args = Payment;
    type Output = PaymentResult;

    fn name(&self) -> &str {
        "payment"
    }

    fn route(&self, args: &Payment) -> Route {
        Route::Key(args.w_id.into())
    }

    fn run(&self, tx: &mut Transaction<'_, '_>, args: &Payment) -> Result<PaymentResult, Abort> {
        let t = &self.0;
        let site = tx.site_of(args.c_w_id.into())?;
        // What is old enough to have left the caches is asked for early; between go warehouse and
        // district, which are always there.
        ask_for_customer(t, tx, site, (args.c_w_id, args.c_d_id), &args.customer);
        let amount = args.h_amount.0;
        let warehouse_key = ShortKey::new().i16(args.w_id);
        let w = &t.warehouse;
        let warehouse = found(tx.table(w.table).find(w.pkey, warehouse_key), "warehouse")?;
        tx.update(w.table, warehouse, |row| row.modify(w.ytd, |ytd| ytd + amount))?;
        let tid = customer(t, tx, site, (args.c_w_id, args.c_d_id), &args.customer)?;
        let c = tx.table_at(site, t.customer.table);
        c.prefetch(tid, t.customer.balance);
        c.prefetch(tid, t.customer.id);
        c.prefetch(tid, t.customer.discount);
        c.prefetch_text(tid, t.customer.last);
        c.prefetch_text(tid, t.customer.street_1);
        c.prefetch_text(tid, t.customer.city);
        let d = &t.district;
        let district = found(tx.table(d.table).find(d.pkey, warehouse_key.i16(args.d_id)), "district")?;
        tx.update(d.table, district, |row| row.modify(d.ytd, |ytd| ytd + amount))?;
        let h_date = tx.now();
        let result = self.result(tx, (site, tid), warehouse, district, args, h_date)?;
        self.history(tx, args, &result, warehouse, district)?;
        Ok(result)
    }
}

impl PaymentProcedure {
    /// Books the payment at the customer and collects the output.
    fn result(
        &self,
        tx: &mut Transaction<'_, '_>,
        (site, tid): (Site, Tid),
        warehouse: Tid,
        district: Tid,
        args: &Payment,
        h_date: i64,
    ) -> Result<PaymentResult, Abort> {
        let (t, amount) = (&self.0, args.h_amount.0);
        let c = &t.customer;
        let c_balance = tx.update_at(site, c.table, tid, |row| {
            row.modify(c.ytd_payment, |ytd| ytd + amount)?;
            row.modify(c.payment_cnt, |count| count + 1)?;
            row.modify(c.balance, |balance| balance - amount)
        })?;
        let table = tx.table_at(site, c.table);
        let c_credit = Text::new(table.text(tid, c.credit));
        let c_id = table.get(tid, c.id);
        let c_data = match c_credit.as_str() {
            "BC" => Some(self.bad_credit(tx, site, tid, c_id, args)?),
            _ => None,
        };
        let (table, w, d) =
            (tx.table_at(site, c.table), tx.table(t.warehouse.table), tx.table(t.district.table));
        let address = |table: &albireo::Table, tid, columns: [albireo::TextCol; 5]| Address {
            street_1: Text::new(table.text(tid, columns[0])),
            street_2: Text::new(table.text(tid, columns[1])),
            city: Text::new(table.text(tid, columns[2])),
            state: Text::new(table.text(tid, columns[3])),
            zip: Text::new(table.text(tid, columns[4])),
        };
        let (wt, dt) = (&t.warehouse, &t.district);
        Ok(PaymentResult {
            c_id,
            c_first: Text::new(table.text(tid, c.first)),
            c_middle: Text::new(table.text(tid, c.middle)),
            c_last: Text::new(table.text(tid, c.last)),
            warehouse: address(w, warehouse, [wt.street_1, wt.street_2, wt.city, wt.state, wt.zip]),
            district: address(d, district, [dt.street_1, dt.street_2, dt.city, dt.state, dt.zip]),
            customer: address(table, tid, [c.street_1, c.street_2, c.city, c.state, c.zip]),
            c_phone: Text::new(table.text(tid, c.phone)),
            c_since: table.get(tid, c.since),
            c_credit,
            c_credit_lim: table.get(tid, c.credit_lim),
            c_discount: table.get(tid, c.discount),
            c_balance,
            c_data,
            h_date,
        })
    }

    /// Puts the payment in front of C_DATA (clause 2.5.2.2).
    fn bad_credit(
        &self,
        tx: &mut Transaction<'_, '_>,
        site: Site,
        tid: Tid,
        c_id: i32,
        args: &Payment,
    ) -> Result<Text<200>, Abort> {
        let c = &self.0.customer;
        let mut data = Text::<C_DATA>::EMPTY;
        let (units, cents) = (args.h_amount.0 / 100, args.h_amount.0 % 100);
        write!(
            data,
            "{c_id} {} {} {} {} {units}.{cents:02}|",
            args.c_d_id, args.c_w_id, args.d_id, args.w_id
        )
        .expect("a line takes what fits");
        data.push_fitting(tx.table_at(site, c.table).text(tid, c.data));
        tx.update_at(site, c.table, tid, |row| row.set_text(c.data, data.as_str()))?;
        Ok(Text::new(&data.as_str()[..data.as_str().len().min(200)]))
    }

    fn history(
        &self,
        tx: &mut Transaction<'_, '_>,
        args: &Payment,
        result: &PaymentResult,
        warehouse: Tid,
        district: Tid,
    ) -> Result<(), Abort> {
        let t = &self.0;
        let mut data = Text::<24>::EMPTY;
        data.push(tx.table(t.warehouse.table).text(warehouse, t.warehouse.name));
        data.push("    ");
        data.push(tx.table(t.district.table).text(district, t.district.name));
        let h = &t.history;
        let mut row = tx.insert(h.table)?;
        row.set(h.c_id, result.c_id)
            .set(h.c_d_id, args.c_d_id)
            .set(h.c_w_id, args.c_w_id)
            .set(h.d_id, args.d_id)
            .set(h.w_id, args.w_id)
            .set(h.date, result.h_date)
            .set(h.amount, args.h_amount.0);
        row.set_text(h.data, data.as_str())?;
        row.finish()?;
        Ok(())
    }
}
