//! Payment (clause 2.5).

use std::borrow::Cow;
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

/// An address as its row lends it.
type Texts<'a> = (Cow<'a, str>, Cow<'a, str>, Cow<'a, str>, Cow<'a, str>, Cow<'a, str>);

impl Address {
    #[inline(always)]
    fn of((street_1, street_2, city, state, zip): Texts<'_>) -> Self {
        Self {
            street_1: Text::new(&street_1),
            street_2: Text::new(&street_2),
            city: Text::new(&city),
            state: Text::new(&state),
            zip: Text::new(&zip),
        }
    }
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

    fn run(&self, tx: &mut Transaction, args: &Payment) -> Result<PaymentResult, Abort> {
        let t = &self.0;
        let site = tx.site_of(args.c_w_id.into())?;
        // What is old enough to have left the caches is asked for early; between go warehouse and
        // district, which are always there.
        ask_for_customer(t, tx, site, (args.c_w_id, args.c_d_id), &args.customer);
        let amount = args.h_amount.0;
        let warehouse_key = ShortKey::new().i16(args.w_id);
        let w = &t.warehouse;
        let warehouse = found(tx.table(w.table).find(w.pkey, warehouse_key), "warehouse")?;
        tx.update_row(w.table, warehouse, &w.paid, |(ytd,)| (ytd + amount,))?;
        let tid = customer(t, tx, site, (args.c_w_id, args.c_d_id), &args.customer)?;
        let c = tx.table_at(site, t.customer.table);
        c.prefetch(tid, t.customer.balance);
        c.prefetch(tid, t.customer.id);
        c.prefetch(tid, t.customer.discount);
        c.prefetch_text(tid, t.customer.last);
        c.prefetch_text(tid, t.customer.street_1);
        c.prefetch_text(tid, t.customer.city);
        c.prefetch_liveness(tid);
        let d = &t.district;
        let district = found(tx.table(d.table).find(d.pkey, warehouse_key.i16(args.d_id)), "district")?;
        tx.update_row(d.table, district, &d.paid, |(ytd,)| (ytd + amount,))?;
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
        tx: &mut Transaction,
        (site, tid): (Site, Tid),
        warehouse: Tid,
        district: Tid,
        args: &Payment,
        h_date: i64,
    ) -> Result<PaymentResult, Abort> {
        let (t, amount) = (&self.0, args.h_amount.0);
        let c = &t.customer;
        let paid = |(balance, ytd, count)| (balance - amount, ytd + amount, count + 1);
        let (c_balance, ..) = tx.update_row_at(site, c.table, tid, &c.paid, paid)?;
        let table = tx.table_at(site, c.table);
        let c_data = match &*table.text(tid, c.credit) {
            "BC" => Some(self.bad_credit(tx, site, tid, table.get(tid, c.id), args)?),
            _ => None,
        };
        let table = tx.table_at(site, c.table);
        let (c_id, first, middle, last, phone, c_since, credit, c_credit_lim, c_discount) =
            table.read(tid, &c.person);
        Ok(PaymentResult {
            c_id,
            c_first: Text::new(&first),
            c_middle: Text::new(&middle),
            c_last: Text::new(&last),
            warehouse: Address::of(tx.table(t.warehouse.table).read(warehouse, &t.warehouse.address)),
            district: Address::of(tx.table(t.district.table).read(district, &t.district.address)),
            customer: Address::of(table.read(tid, &c.address)),
            c_phone: Text::new(&phone),
            c_since,
            c_credit: Text::new(&credit),
            c_credit_lim,
            c_discount,
            c_balance,
            c_data,
            h_date,
        })
    }

    /// Puts the payment in front of C_DATA (clause 2.5.2.2).
    fn bad_credit(
        &self,
        tx: &mut Transaction,
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
        data.push_fitting(&tx.table_at(site, c.table).text(tid, c.data));
        tx.update_at(site, c.table, tid, |row| row.set_text(c.data, data.as_str()))?;
        Ok(Text::new(&data.as_str()[..data.as_str().len().min(200)]))
    }

    fn history(
        &self,
        tx: &mut Transaction,
        args: &Payment,
        result: &PaymentResult,
        warehouse: Tid,
        district: Tid,
    ) -> Result<(), Abort> {
        let t = &self.0;
        let mut data = Text::<24>::EMPTY;
        data.push(&tx.table(t.warehouse.table).text(warehouse, t.warehouse.name));
        data.push("    ");
        data.push(&tx.table(t.district.table).text(district, t.district.name));
        let row = (
            result.c_id,
            args.c_d_id,
            args.c_w_id,
            args.d_id,
            args.w_id,
            result.h_date,
            args.h_amount.0,
            data.as_str(),
        );
        tx.insert_row(t.history.table, &t.history.row, row)?;
        Ok(())
    }
}
