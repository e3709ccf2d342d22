//! TPC-C: schema, population, transaction inputs and consistency conditions.
//!
//! Responsible for: what clauses 1 to 4 of the specification say about data and inputs. Not
//! responsible for: running transactions. There is no think time, no terminal and no deferred
//! Delivery queue here; results are therefore no TPC-C results.

pub mod consistency;
pub mod input;
pub mod population;
pub mod procedures;
pub mod random;
pub mod rows;
pub mod schema;
pub mod text;

/// Districts of every warehouse (clause 1.2.1).
pub const DISTRICTS: i16 = 10;
/// Lines an order can have at most (clause 2.4.1.3).
pub const MAX_ORDER_LINES: usize = 15;

/// Cardinalities of the population. [`Scale::SPEC`] is what the specification demands and what
/// every measurement uses; smaller ones are for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Rows of ITEM, and of STOCK per warehouse.
    pub items: i32,
    /// Customers of a district, and as many orders.
    pub customers: i32,
}

impl Scale {
    /// Clause 4.3.3: 100,000 items, 3,000 customers and orders a district.
    pub const SPEC: Self = Self { items: 100_000, customers: 3_000 };
    /// For tests: 1/50 of the specification.
    pub const SMALL: Self = Self { items: 2_000, customers: 60 };

    /// Orders of a district that are delivered already; later ones are in NEW_ORDER. 2,100 by the
    /// specification.
    pub fn delivered(self) -> i32 {
        self.customers / 10 * 7
    }

    /// Different last names among a district's customers: 1,000 by the specification.
    pub fn last_names(self) -> i32 {
        self.customers.min(1_000)
    }
}
