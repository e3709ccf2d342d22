-- HyPer §5.2: the ten customers of a district ($2) of a warehouse ($1) with the highest revenue.
-- Deviation: customers of equal revenue are ordered by their id, so that the result is one.
SELECT o_c_id, sum(ol_amount) AS revenue
  FROM orders JOIN order_line ON ol_o_id = o_id
 WHERE o_w_id = $1
   AND o_d_id = $2
   AND ol_w_id = $1
   AND ol_d_id = $2
 GROUP BY o_c_id
 ORDER BY sum(ol_amount) DESC, o_c_id
 LIMIT 10
