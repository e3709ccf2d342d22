//! Inputs of the five transactions, generated as clause 2 says, without allocating.
//!
//! Responsible for: which transaction comes next ([`Mix`], [`Deck`]) and with which arguments. Not
//! responsible for: dates; a transaction takes its time from the engine, so that its record can be
//! replayed.
//!
//! A terminal of the specification belongs to one warehouse (and for Stock-Level to one district).
//! Here one generator stands for all terminals of some warehouses and picks among them uniformly.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::random::{Constants, Random, last_name};
use super::rows::{Fixed, Money};
use super::text::Text;
use super::{DISTRICTS, MAX_ORDER_LINES, Scale};

/// A type of transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// How often each type of transaction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// All five: 45 New-Order, 43 Payment and 4 of each other in 100 (clause 5.2.3; HyPer §5.4).
    #[default]
    Spec,
    /// New-Order and Payment alone, 45 to 43 (HyPer §5.3.2).
    Two,
}

impl Mix {
    /// How many cards each type has in a deck.
    pub fn cards(self) -> &'static [(Kind, usize)] {
        use Kind::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
        match self {
            Self::Spec => &[(NewOrder, 45), (Payment, 43), (OrderStatus, 4), (Delivery, 4), (StockLevel, 4)],
            Self::Two => &[(NewOrder, 45), (Payment, 43)],
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Spec => "spec",
            Self::Two => "two",
        })
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "spec" => Ok(Self::Spec),
            "two" => Ok(Self::Two),
            _ => Err(format!("'{text}' is not a mix; use spec or two")),
        }
    }
}

/// A shuffled deck of cards, one a transaction (clause 5.2.4.2): shares are exact over each deck.
#[derive(Clone, Debug)]
pub struct Deck {
    cards: Vec<Kind>,
    next: usize,
}

impl Deck {
    /// A deck that is shuffled before its first card is drawn.
    pub fn new(mix: Mix) -> Self {
        let cards = mix.cards().iter().flat_map(|&(kind, count)| std::iter::repeat_n(kind, count));
        Self { cards: cards.collect(), next: 0 }
    }

    /// The next card; the deck is shuffled again when it is through.
    pub fn draw(&mut self, random: &mut Random) -> Kind {
        if self.next == 0 {
            random.shuffle(&mut self.cards);
        }
        let card = self.cards[self.next];
        self.next = (self.next + 1) % self.cards.len();
        card
    }
}

/// One transaction and its arguments.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub enum Transaction {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Transaction {
    /// Which type of transaction this is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }

    /// The home warehouse, whose partition runs the transaction.
    pub fn home(&self) -> i16 {
        match self {
            Self::NewOrder(input) => input.w_id,
            Self::Payment(input) => input.w_id,
            Self::OrderStatus(input) => input.w_id,
            Self::Delivery(input) => input.w_id,
            Self::StockLevel(input) => input.w_id,
        }
    }

    /// Whether the transaction touches a warehouse for which `elsewhere` holds, besides its home.
    pub fn leaves(&self, elsewhere: impl Fn(i16) -> bool) -> bool {
        match self {
            Self::NewOrder(input) => input.lines().iter().any(|line| elsewhere(line.supply_w_id)),
            Self::Payment(input) => elsewhere(input.c_w_id),
            Self::OrderStatus(_) | Self::Delivery(_) | Self::StockLevel(_) => false,
        }
    }
}

/// How a transaction names its customer (clauses 2.5.1.2 and 2.6.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CustomerKey {
    /// By C_ID.
    Id(i32),
    /// By C_LAST: the one in the middle, rounded up, of those with this name, by C_FIRST.
    LastName(Text<16>),
}

/// One line of a new order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// OL_I_ID. No item has this id in the last line of a transaction that rolls back.
    pub i_id: i32,
    /// OL_SUPPLY_W_ID.
    pub supply_w_id: i16,
    /// OL_QUANTITY.
    pub quantity: i16,
}

/// Arguments of New-Order (clause 2.4.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct NewOrder {
    pub w_id: i16,
    pub d_id: i16,
    pub c_id: i32,
    lines: [Line; MAX_ORDER_LINES],
    ol_cnt: u8,
    /// Whether every line is supplied by the home warehouse: O_ALL_LOCAL.
    pub all_local: bool,
    /// Whether the last item is unused, so that the transaction must roll back. Only for checking
    /// the outcome: a transaction has to find it out itself.
    pub rolls_back: bool,
}

impl NewOrder {
    /// An order of `lines`, 1 to 15 of them.
    pub fn new(w_id: i16, d_id: i16, c_id: i32, lines: &[Line], rolls_back: bool) -> Self {
        let mut all = [Line::default(); MAX_ORDER_LINES];
        all[..lines.len()].copy_from_slice(lines);
        let all_local = lines.iter().all(|line| line.supply_w_id == w_id);
        Self { w_id, d_id, c_id, lines: all, ol_cnt: lines.len() as u8, all_local, rolls_back }
    }

    /// The order's lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines[..usize::from(self.ol_cnt)]
    }
}

/// Arguments of Payment (clause 2.5.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct Payment {
    pub w_id: i16,
    pub d_id: i16,
    pub c_w_id: i16,
    pub c_d_id: i16,
    pub customer: CustomerKey,
    pub h_amount: Money,
}

/// Arguments of Order-Status (clause 2.6.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct OrderStatus {
    pub w_id: i16,
    pub d_id: i16,
    pub customer: CustomerKey,
}

/// Arguments of Delivery (clause 2.7.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct Delivery {
    pub w_id: i16,
    pub o_carrier_id: i16,
}

/// Arguments of Stock-Level (clause 2.8.1).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub struct StockLevel {
    pub w_id: i16,
    pub d_id: i16,
    pub threshold: i16,
}

/// The transactions of all terminals of some warehouses, without end.
#[derive(Clone, Debug)]
pub struct Inputs {
    random: Random,
    constants: Constants,
    deck: Deck,
    scale: Scale,
    warehouses: i16,
    homes: Vec<i16>,
}

impl Inputs {
    /// Inputs for terminals at `homes` (not empty) in a database of `warehouses`, populated from
    /// `seed`. Generators with different `stream`s are independent.
    pub fn new(mix: Mix, scale: Scale, warehouses: i16, homes: &[i16], seed: u64, stream: u64) -> Self {
        assert!(!homes.is_empty(), "a terminal needs a warehouse");
        assert!(homes.iter().all(|home| (1..=warehouses).contains(home)), "no such warehouse");
        Self {
            random: Random::stream(seed, &[u64::from_be_bytes(*b"terminal"), stream]),
            constants: Constants::run(seed),
            deck: Deck::new(mix),
            scale,
            warehouses,
            homes: homes.to_vec(),
        }
    }

    /// The next transaction.
    pub fn next_transaction(&mut self) -> Transaction {
        match self.deck.draw(&mut self.random) {
            Kind::NewOrder => Transaction::NewOrder(self.new_order()),
            Kind::Payment => Transaction::Payment(self.payment()),
            Kind::OrderStatus => Transaction::OrderStatus(self.order_status()),
            Kind::Delivery => Transaction::Delivery(self.delivery()),
            Kind::StockLevel => Transaction::StockLevel(self.stock_level()),
        }
    }

    /// Clause 2.4.1: 5 to 15 lines, 1 % of them remote, 1 % of the orders with an unused item.
    fn new_order(&mut self) -> NewOrder {
        let w_id = self.home();
        let (d_id, c_id) = (self.district(), self.customer_id());
        let ol_cnt = self.random.uniform(5, MAX_ORDER_LINES as i32) as usize;
        let rolls_back = self.random.percent(1);
        let mut lines = [Line::default(); MAX_ORDER_LINES];
        for line in &mut lines[..ol_cnt] {
            line.i_id = self.constants.item_id(&mut self.random, self.scale.items);
            line.supply_w_id = if self.random.percent(1) { self.other_warehouse(w_id) } else { w_id };
            line.quantity = self.random.uniform(1, 10) as i16;
        }
        if rolls_back {
            lines[ol_cnt - 1].i_id = self.scale.items + 1;
        }
        NewOrder::new(w_id, d_id, c_id, &lines[..ol_cnt], rolls_back)
    }

    /// Clause 2.5.1: 15 % of the customers from another warehouse, 60 % by name.
    fn payment(&mut self) -> Payment {
        let w_id = self.home();
        let d_id = self.district();
        let (c_w_id, c_d_id) = match self.random.percent(85) {
            true => (w_id, d_id),
            false => (self.other_warehouse(w_id), self.district()),
        };
        let customer = self.customer();
        let h_amount = Fixed(self.random.uniform(1_00, 5_000_00).into());
        Payment { w_id, d_id, c_w_id, c_d_id, customer, h_amount }
    }

    fn order_status(&mut self) -> OrderStatus {
        OrderStatus { w_id: self.home(), d_id: self.district(), customer: self.customer() }
    }

    fn delivery(&mut self) -> Delivery {
        Delivery { w_id: self.home(), o_carrier_id: self.random.uniform(1, 10) as i16 }
    }

    fn stock_level(&mut self) -> StockLevel {
        let threshold = self.random.uniform(10, 20) as i16;
        StockLevel { w_id: self.home(), d_id: self.district(), threshold }
    }

    fn home(&mut self) -> i16 {
        self.homes[self.random.below(self.homes.len() as u64) as usize]
    }

    /// A warehouse other than `home`, if there is one.
    fn other_warehouse(&mut self, home: i16) -> i16 {
        if self.warehouses == 1 {
            return home;
        }
        let other = self.random.uniform(1, i32::from(self.warehouses) - 1) as i16;
        other + i16::from(other >= home)
    }

    fn district(&mut self) -> i16 {
        self.random.uniform(1, DISTRICTS.into()) as i16
    }

    fn customer_id(&mut self) -> i32 {
        self.constants.customer_id(&mut self.random, self.scale.customers)
    }

    /// 60 % by last name, 40 % by id.
    fn customer(&mut self) -> CustomerKey {
        if !self.random.percent(60) {
            return CustomerKey::Id(self.customer_id());
        }
        let number = self.constants.last_name_number(&mut self.random, self.scale.last_names());
        CustomerKey::LastName(last_name(number))
    }
}

#[cfg(test)]
mod tests;
