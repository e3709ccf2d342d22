//! The 22 queries of CH-benCHmark and the top-10 query of the HyPer paper.
//!
//! The texts are PostgreSQL and lie in `queries/`, one file each; where one deviates from the
//! original, its comment says how and why. No query but top-10 has a LIMIT, so none needs a complete
//! order: compare results as sets where the original leaves rows tied.
//!
//! Besides standard SQL they need `mod`, `ascii`, `substr` and `extract(year FROM ...)`.

use std::fmt;
use std::str::FromStr;

/// One query.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// What reports call it: `Q1` to `Q22`, `top10`.
    pub name: &'static str,
    /// The statement.
    pub sql: &'static str,
    /// How many parameters it takes: none, or warehouse and district.
    pub parameters: usize,
}

macro_rules! queries {
    ($($name:literal from $file:literal,)*) => {
        [$(Query { name: $name, sql: include_str!(concat!("queries/", $file, ".sql")), parameters: 0 }),*]
    };
}

/// The 22 queries, in order.
pub static QUERIES: [Query; 22] = queries![
    "Q1" from "01",
    "Q2" from "02",
    "Q3" from "03",
    "Q4" from "04",
    "Q5" from "05",
    "Q6" from "06",
    "Q7" from "07",
    "Q8" from "08",
    "Q9" from "09",
    "Q10" from "10",
    "Q11" from "11",
    "Q12" from "12",
    "Q13" from "13",
    "Q14" from "14",
    "Q15" from "15",
    "Q16" from "16",
    "Q17" from "17",
    "Q18" from "18",
    "Q19" from "19",
    "Q20" from "20",
    "Q21" from "21",
    "Q22" from "22",
];

/// The top-10 query: `$1` is the warehouse, `$2` the district, both SMALLINT.
pub static TOP10: Query = Query { name: "top10", sql: include_str!("queries/top10.sql"), parameters: 2 };

/// The queries of a run, in order, each at most once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection(Vec<Query>);

impl Selection {
    /// All 22.
    pub fn all() -> Self {
        Self(QUERIES.to_vec())
    }

    /// The queries.
    pub fn queries(&self) -> &[Query] {
        &self.0
    }
}

/// `all`, or a list of `top10` and numbers from 1 to 22 with commas between them.
impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::all());
        }
        let mut queries = Vec::new();
        for part in text.split(',').map(str::trim) {
            let query = match part.strip_prefix(['q', 'Q']).unwrap_or(part).parse::<usize>() {
                Ok(number @ 1..=22) => QUERIES[number - 1],
                _ if part == TOP10.name => TOP10,
                _ => {
                    return Err(format!(
                        "'{part}' is not a query; use all, top10, or numbers from 1 to 22 such as 1,6,12"
                    ));
                }
            };
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
        Ok(Self(queries))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == QUERIES {
            return f.write_str("all");
        }
        let names: Vec<_> = self.0.iter().map(|query| query.name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_takes_all_top10_and_numbers() {
        let names = |text: &str| text.parse::<Selection>().map(|selection| selection.to_string());
        assert_eq!(names("all"), Ok("all".into()));
        assert_eq!(names("top10"), Ok("top10".into()));
        assert_eq!(names("1, 6,q12,6"), Ok("Q1,Q6,Q12".into()));
        assert_eq!(names("top10,3"), Ok("top10,Q3".into()));
        for wrong in ["", "0", "23", "1,,2", "everything"] {
            assert!(names(wrong).unwrap_err().contains("is not a query"), "{wrong}");
        }
    }

    #[test]
    fn query_files_are_the_queries_they_are_named_for() {
        for query in QUERIES {
            assert!(query.sql.starts_with(&format!("-- {}:", query.name)), "{}", query.name);
        }
    }
}
