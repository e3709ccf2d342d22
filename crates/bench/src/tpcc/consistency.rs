//! The twelve consistency conditions of clause 3.3.2, each as a query that counts violations.
//!
//! Every query gives one row with one number, 0 when the condition holds. They run unchanged in
//! PostgreSQL and SQLite, compare exact numbers with each other and never with a literal amount, and
//! aggregate before they join, so that none needs a correlated subquery.
//!
//! Two conditions need a word. Conditions 2 and 3 leave out districts without new orders, as their
//! comments say. Condition 11 as printed (orders less new orders are 2,100 a district) holds only
//! until the first Delivery; since the same row of CUSTOMER that the clause names counts deliveries,
//! we demand 2,100 plus C_DELIVERY_CNT, which is the printed condition at the start and stays exact
//! afterwards.

use super::Scale;

/// Conditions there are.
pub const COUNT: usize = 12;

/// Text of the conditions; condition 11 has a place for the orders delivered initially.
const CONDITIONS: [&str; COUNT] = [
    // 1: W_YTD = sum(D_YTD).
    "SELECT count(*)
       FROM warehouse
       LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id
      WHERE ytd IS NULL OR w_ytd <> ytd",
    // 2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID).
    "SELECT count(*)
       FROM district
       LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last_order
                    FROM orders GROUP BY o_w_id, o_d_id) AS o
         ON o_w_id = d_w_id AND o_d_id = d_id
       LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last_new_order
                    FROM new_order GROUP BY no_w_id, no_d_id) AS n
         ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE last_order IS NULL OR last_order <> d_next_o_id - 1 OR last_new_order <> d_next_o_id - 1",
    // 3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW_ORDER.
    "SELECT count(*)
       FROM (SELECT no_w_id, no_d_id, max(no_o_id) - min(no_o_id) + 1 AS span, count(*) AS new_orders
               FROM new_order GROUP BY no_w_id, no_d_id) AS n
      WHERE span <> new_orders",
    // 4: sum(O_OL_CNT) = rows of ORDER_LINE.
    "SELECT count(*)
       FROM district
       LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS announced
                    FROM orders GROUP BY o_w_id, o_d_id) AS o
         ON o_w_id = d_w_id AND o_d_id = d_id
       LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found
                    FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
         ON ol_w_id = d_w_id AND ol_d_id = d_id
      WHERE announced IS NULL OR found IS NULL OR announced <> found",
    // 5: O_CARRIER_ID is null if and only if the order is in NEW_ORDER.
    "SELECT count(*)
       FROM orders
       LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
      WHERE (o_carrier_id IS NULL AND no_o_id IS NULL)
         OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)",
    // 6: O_OL_CNT = rows of ORDER_LINE of the order.
    "SELECT count(*)
       FROM orders
       LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found
                    FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE found IS NULL OR found <> o_ol_cnt",
    // 7: OL_DELIVERY_D is null if and only if O_CARRIER_ID of the order is.
    "SELECT count(*)
       FROM order_line
       LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
      WHERE o_id IS NULL
         OR (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL)
         OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)",
    // 8: W_YTD = sum(H_AMOUNT).
    "SELECT count(*)
       FROM warehouse
       LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id
      WHERE paid IS NULL OR w_ytd <> paid",
    // 9: D_YTD = sum(H_AMOUNT).
    "SELECT count(*)
       FROM district
       LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid
                    FROM history GROUP BY h_w_id, h_d_id) AS h
         ON h_w_id = d_w_id AND h_d_id = d_id
      WHERE paid IS NULL OR d_ytd <> paid",
    // 10: C_BALANCE = sum(OL_AMOUNT) of the customer's delivered lines - sum(H_AMOUNT).
    "SELECT count(*)
       FROM customer
       LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS owed
                    FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                   WHERE ol_delivery_d IS NOT NULL
                   GROUP BY o_w_id, o_d_id, o_c_id) AS o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
       LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid
                    FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
      WHERE c_balance <> coalesce(owed, 0) - coalesce(paid, 0)",
    // 11: orders - new orders = orders delivered initially + deliveries since.
    "SELECT count(*)
       FROM (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS deliveries
               FROM customer GROUP BY c_w_id, c_d_id) AS c
       LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS entered
                    FROM orders GROUP BY o_w_id, o_d_id) AS o
         ON o_w_id = c_w_id AND o_d_id = c_d_id
       LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting
                    FROM new_order GROUP BY no_w_id, no_d_id) AS n
         ON no_w_id = c_w_id AND no_d_id = c_d_id
      WHERE entered IS NULL OR entered - coalesce(waiting, 0) <> {delivered} + deliveries",
    // 12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of the customer's delivered lines.
    "SELECT count(*)
       FROM customer
       LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS owed
                    FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                   WHERE ol_delivery_d IS NOT NULL
                   GROUP BY o_w_id, o_d_id, o_c_id) AS o
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      WHERE c_balance + c_ytd_payment <> coalesce(owed, 0)",
];

/// The query that counts the violations of `condition`, 1 to 12, in a database of `scale`.
pub fn violations(condition: usize, scale: Scale) -> String {
    CONDITIONS[condition - 1].replace("{delivered}", &scale.delivered().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_11_of_the_specification_counts_from_2100() {
        assert!(violations(11, Scale::SPEC).ends_with("<> 2100 + deliveries"));
        assert!((1..=COUNT).all(|condition| !violations(condition, Scale::SMALL).contains('{')));
    }
}
