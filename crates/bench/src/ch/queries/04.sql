-- Q4: orders with a line delivered when or after they were entered, by their number of lines.
-- Deviation: the original ends in 2012, when it was written, to select every order; so does 2112.
SELECT o_ol_cnt, count(*) AS order_count
  FROM orders
 WHERE o_entry_d >= '2007-01-02 00:00:00.000000'
   AND o_entry_d < '2112-01-02 00:00:00.000000'
   AND EXISTS (SELECT *
                 FROM order_line
                WHERE o_id = ol_o_id
                  AND o_w_id = ol_w_id
                  AND o_d_id = ol_d_id
                  AND ol_delivery_d >= o_entry_d)
 GROUP BY o_ol_cnt
 ORDER BY o_ol_cnt
